package dataplanetest

import "net/http"

func (s *Server) configuration(w http.ResponseWriter, r *http.Request, path []string) {
	notFound(w, r)
}
