package dpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// StartTransaction opens a transaction on a version of the configuration and
// returns its id. Status 409 says that the version is another one, 429 that too
// many are open. It stays open, over restarts too, until somebody commits or
// deletes it.
func (c *Client) StartTransaction(ctx context.Context, version int64) (id string, err error) {
	a, err := c.do(ctx, call{
		method: http.MethodPost, path: transactionPath(), query: url.Values{"version": {strconv.FormatInt(version, 10)}},
	})
	if err != nil {
		return "", err
	}
	var t struct {
		ID string `json:"id"`
	}
	if err := a.json(&t); err != nil {
		return "", err
	}
	if t.ID == "" {
		return "", &url.Error{Op: "decode", URL: "answer", Err: fmt.Errorf("a transaction without an id")}
	}
	return t.ID, nil
}

// Change makes a structured change within a transaction. The target is path and
// query below the configuration, escaped: "backends/shop/servers/s1". A nil body
// sends none.
func (c *Client) Change(ctx context.Context, transaction, method, target string, body []byte) error {
	path, rawQuery, _ := strings.Cut(target, "?")
	q, err := url.ParseQuery(rawQuery)
	if err != nil {
		return err
	}
	q.Set("transaction_id", transaction)
	elements := []string{"services", "haproxy", "configuration"}
	for e := range strings.SplitSeq(path, "/") {
		plain, err := url.PathUnescape(e)
		if err != nil {
			return err
		}
		elements = append(elements, plain)
	}
	r := call{method: method, path: elements, query: q, body: body}
	if body != nil {
		r.contentType = "application/json"
	}
	_, err = c.do(ctx, r)
	return err
}

// GetRawOf reads the configuration as a transaction would make it.
func (c *Client) GetRawOf(ctx context.Context, transaction string) (Raw, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: rawPath(), query: url.Values{"transaction_id": {transaction}}})
	if err != nil {
		return Raw{}, err
	}
	return a.raw(), nil
}

// Commit makes a transaction the configuration and has HAProxy reload before it
// returns. Statuses 409 and 406 say that the configuration has changed since
// the transaction was opened, 400 that HAProxy refuses it or could not load it.
func (c *Client) Commit(ctx context.Context, transaction string) error {
	_, err := c.do(ctx, call{
		method: http.MethodPut, path: transactionPath(transaction), query: url.Values{string(ForceReload): {"true"}},
	})
	return err
}

// DeleteTransaction gives a transaction up. Status 404 says that there is none.
func (c *Client) DeleteTransaction(ctx context.Context, transaction string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: transactionPath(transaction)})
	return err
}

func transactionPath(id ...string) []string {
	return append([]string{"services", "haproxy", "transactions"}, id...)
}
