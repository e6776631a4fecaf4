package observe

import "net/http"

func (o *Observer) page(w http.ResponseWriter, r *http.Request) {}
