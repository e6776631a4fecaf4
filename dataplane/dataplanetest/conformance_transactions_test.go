package dataplanetest_test

import "fmt"

func transactionScenarios() []scenario {
	const unknown = "transactions/00000000-0000-0000-0000-000000000000"
	var many []step
	for range 20 {
		many = append(many, step{do: "POST transactions?version={v}", status: 201})
	}
	many = append(many,
		step{do: "POST transactions?version={v}", status: 429, want: "reached the maximum amount of 20 active transactions"},
		step{do: "GET configuration/version", status: 200, want: "1"},
	)
	return []scenario{
		{name: "transaction, committed", steps: []step{
			{do: "GET transactions", status: 200, want: "[]"},
			{do: "POST transactions?version={v}", status: 201, want: `"status":"in_progress"`, save: "tx"},
			{do: "GET transactions", status: 200, want: `"_version":1`},
			{do: "GET transactions/{tx}", status: 200, want: `"id":"$tx"`},
			{do: "POST configuration/backends?transaction_id={tx}", body: `{"name":"new","mode":"http"}`, status: 202, want: `"name":"new"`},
			{do: "GET configuration/backends/new", status: 404, want: "Backend new does not exist"},
			{do: "GET configuration/backends/new?transaction_id={tx}", status: 200, want: `"name":"new"`},
			{do: "GET configuration/raw?transaction_id={tx}", status: 200, want: "backend new"},
			{do: "GET configuration/version?transaction_id={tx}", status: 200, want: "1"},
			{do: "PUT transactions/{tx}", status: 202, reload: true, save: "reload", want: `"status":"success"`},
			{do: "GET configuration/version", status: 200, want: "2"},
			{do: "GET configuration/backends/new", status: 200, want: `"name":"new"`},
			{do: "GET transactions/{tx}", status: 404},
			{do: "PUT transactions/{tx}", status: 404},
			{do: "DELETE transactions/{tx}", status: 404},
			{do: "GET transactions", status: 200, want: "[]"},
		}},
		{name: "transaction, empty and forced", steps: []step{
			{do: "POST transactions?version={v}", status: 201, save: "tx"},
			{do: "PUT transactions/{tx}?force_reload=true", status: 200, want: `"_version":1`},
			{do: "GET configuration/version", status: 200, want: "2"},
		}},
		{name: "transaction, refused", steps: []step{
			{do: "POST transactions", status: 422, want: "version in query is required"},
			{do: "POST transactions?version=9", status: 409, want: "version mismatch"},
			{do: "POST transactions?version=x", status: 422, want: "version in query must be of type int64"},
			{do: "GET " + unknown, status: 404},
			{do: "PUT " + unknown, status: 404},
			{do: "DELETE " + unknown, status: 404},
			{do: "PATCH " + unknown, status: 405, differs: "the order of the methods"},
			{do: "GET transactions?status=failed", status: 200, want: "[]"},
			{do: "POST configuration/backends?transaction_id=0", body: `{"name":"new"}`, status: 400, want: "transaction does not exist"},
			{do: "GET configuration/backends?transaction_id=0", status: 400, want: "transaction does not exist"},
		}},
		{name: "transaction, deleted", steps: []step{
			{do: "POST transactions?version={v}", status: 201, save: "tx"},
			{do: "DELETE configuration/backends/b?transaction_id={tx}", status: 202},
			{do: "DELETE transactions/{tx}", status: 204},
			{do: "GET transactions/{tx}", status: 404},
			{do: "GET configuration/backends/b", status: 200, want: `"name":"b"`},
			{do: "DELETE configuration/backends/b?transaction_id={tx}", status: 400, want: "transaction does not exist"},
		}},
		{name: "transaction, outdated by a push", steps: []step{
			{do: "POST transactions?version={v}", status: 201, save: "tx"},
			{do: "POST configuration/raw?version={v}&skip_reload=true", body: startText, status: 201},
			{do: "PUT transactions/{tx}", status: 409, want: "version mismatch, transaction version: 1, configured version: 2"},
			{do: "PUT transactions/{tx}", status: 406, want: "is outdated and cannot be committed"},
			{do: "GET transactions/{tx}", status: 200, want: `"status":"outdated"`},
			{do: "GET transactions?status=outdated", status: 422, want: "status in query should be one of [failed in_progress]"},
			{do: "GET transactions", status: 200, want: `"status":"outdated"`},
			{do: "DELETE transactions/{tx}", status: 204},
			{do: "GET transactions", status: 200, want: "[]"},
		}},
		{name: "transaction, outdated by another", steps: []step{
			{do: "POST transactions?version={v}", status: 201, save: "one"},
			{do: "POST transactions?version={v}", status: 201, save: "other"},
			{do: "PUT transactions/{one}?force_reload=true", status: 200},
			{do: "GET transactions/{other}", status: 200, want: `"status":"outdated"`},
			{do: "PUT transactions/{other}", status: 406, want: "is outdated and cannot be committed"},
			{do: "DELETE configuration/backends/b?transaction_id={other}", status: 400, want: "transaction does not exist"},
		}},
		{name: "transaction, of what haproxy refuses", judge: true, steps: []step{
			{do: "POST transactions?version={v}", status: 201, save: "tx"},
			{do: "DELETE configuration/backends/b?transaction_id={tx}", status: 202},
			{do: "PUT transactions/{tx}", status: 400, want: "validation error: exit status 1: err transactionId=$tx"},
			{do: "PUT transactions/{tx}", status: 406, want: "is failed and cannot be committed"},
			{do: "GET transactions/{tx}", status: 200, want: `"status":"failed"`},
			{do: "GET transactions?status=failed", status: 200, want: `"id":"$tx"`},
			{do: "GET configuration/version", status: 200, want: "1"},
			{do: "DELETE transactions/{tx}", status: 204},
		}},
		{name: fmt.Sprintf("transactions, %d of them", 20), steps: many},
	}
}
