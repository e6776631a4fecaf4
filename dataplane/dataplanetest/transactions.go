package dataplanetest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/haproxytech/client-native/v6/configuration"
	"github.com/haproxytech/client-native/v6/models"
)

// maxTransactions is how many transactions may be open, by default of the API.
const maxTransactions = 20

// transactions answers below transactions.
func (s *Server) transactions(w http.ResponseWriter, r *http.Request, path []string) {
	switch {
	case len(path) == 0 && r.Method == http.MethodGet:
		s.listTransactions(w, r.URL.Query().Get("status"))
	case len(path) == 0 && r.Method == http.MethodPost:
		s.startTransaction(w, r)
	case len(path) == 0:
		notAllowed(w, r, http.MethodGet, http.MethodPost)
	case len(path) > 1:
		notFound(w, r)
	case r.Method == http.MethodGet:
		if t, ok := s.transaction(w, path[0]); ok {
			reply(w, http.StatusOK, t)
		}
	case r.Method == http.MethodPut:
		s.commitTransaction(w, r, path[0])
	case r.Method == http.MethodDelete:
		s.deleteTransaction(w, path[0])
	default:
		notAllowed(w, r, http.MethodDelete, http.MethodGet, http.MethodPut)
	}
}

func (s *Server) listTransactions(w http.ResponseWriter, status string) {
	switch status {
	case "", models.TransactionStatusFailed, models.TransactionStatusInProgress:
	default:
		failCode(w, http.StatusUnprocessableEntity, codeOneOf, "status in query should be one of [failed in_progress]")
		return
	}
	list, err := s.engine.transactions(status)
	if err != nil {
		failError(w, err)
		return
	}
	reply(w, http.StatusOK, list)
}

func (s *Server) startTransaction(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("version") == "" {
		failRequired(w, "version in query")
		return
	}
	version, ok := number(w, r, "version")
	if !ok {
		return
	}
	if open, err := s.engine.transactions(models.TransactionStatusInProgress); err == nil && len(open) >= maxTransactions {
		fail(w, http.StatusTooManyRequests, fmt.Sprintf("cannot start a new transaction, reached the maximum amount of %d active transactions available", maxTransactions))
		return
	}
	var t *models.Transaction
	err := s.engine.do(func(cfg configuration.Configuration) (err error) {
		t, err = cfg.StartTransaction(version)
		return err
	})
	if err != nil {
		failError(w, err)
		return
	}
	reply(w, http.StatusCreated, t)
}

// transaction finds a transaction, or answers that there is none.
func (s *Server) transaction(w http.ResponseWriter, id string) (t *models.Transaction, ok bool) {
	err := s.engine.do(func(cfg configuration.Configuration) (err error) {
		t, err = cfg.GetTransaction(id)
		return err
	})
	if err != nil {
		failTransaction(w, err)
		return nil, false
	}
	return t, true
}

// failTransaction answers 404 for what ends in the words that the API looks for.
func failTransaction(w http.ResponseWriter, err error) {
	if strings.HasSuffix(err.Error(), "does not exist") {
		fail(w, http.StatusNotFound, err.Error())
		return
	}
	failError(w, err)
}

func (s *Server) commitTransaction(w http.ResponseWriter, r *http.Request, id string) {
	t, ok := s.transaction(w, id)
	if !ok {
		return
	}
	if t.Status != models.TransactionStatusInProgress {
		failf(w, http.StatusNotAcceptable, "transaction %s is %s and cannot be committed", id, t.Status)
		return
	}
	s.beforeWrite()
	t, err := s.engine.commit(id)
	if err != nil {
		failTransaction(w, err)
		return
	}
	s.finish(w, r, http.StatusOK, t)
}

func (s *Server) deleteTransaction(w http.ResponseWriter, id string) {
	err := s.engine.do(func(cfg configuration.Configuration) error { return cfg.DeleteTransaction(id) })
	if err != nil {
		failTransaction(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// transactions lists the transactions of that status, "" for all.
func (e *engine) transactions(status string) (list models.Transactions, err error) {
	err = e.do(func(cfg configuration.Configuration) error {
		all, err := cfg.GetTransactions(status)
		if err == nil {
			list = *all
		}
		return err
	})
	return list, err
}

// Transactions returns the identifiers of the transactions that are open: what
// somebody has started and neither committed nor deleted.
func (s *Server) Transactions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	open, err := s.engine.transactions(models.TransactionStatusInProgress)
	if err != nil {
		s.report(err)
	}
	ids := []string{}
	for _, t := range open {
		ids = append(ids, t.ID)
	}
	return ids
}
