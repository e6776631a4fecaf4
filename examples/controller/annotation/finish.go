package annotation

import (
	"strconv"
)

// finish checks how annotations fit together, and drops those without effect alone.
func (r *reader) finish(annotations map[string]string) {
	refuse := func(name, reason string) { r.refuse(Of(NGINX+name), Given(annotations, NGINX+name), reason) }
	if !r.authType && r.Auth.Secret == "" { // a realm alone does nothing
		r.Auth = Auth{}
	}
	switch asks := r.authType || r.Auth != (Auth{}); {
	case !asks || r.Closed:
	case r.Auth.Secret == "":
		refuse("auth-type", "there is no auth-secret: name the Secret that has the users")
	case !r.authType:
		refuse("auth-secret", `there is no auth-type: write "basic"`)
	case r.Auth.Realm == "":
		r.Auth.Realm = "Authentication Required"
	}
	if r.Server.Verify && r.Server.CA == "" {
		refuse("proxy-ssl-verify", "there is no proxy-ssl-secret: name the Secret that has ca.crt")
	}
	if !r.Server.Verify && r.Server.CA != "" {
		name := NGINX + "proxy-ssl-secret"
		r.warn(Of(name), Given(annotations, name), "it does nothing without proxy-ssl-verify: on, as no client certificate is sent to servers")
		r.Server.CA, r.Server.CAKey = "", ""
	}
	if !r.CORS.Enabled {
		r.CORS = CORS{}
	} else if r.CORS.Any {
		r.CORS.Credentials = false
	}
	r.finishRate()
	r.finishCanary(refuse)
}

// finishServer also drops options of a Service without effect alone.
func (r *reader) finishServer() {
	if r.Server.Verify { // even if a Service says that it has no TLS
		r.Server.TLS = true
	}
	if !r.Server.Check {
		r.Server.CheckPath, r.Server.CheckEvery = "", ""
	}
	if r.Cookie.Name == "" {
		r.Cookie = Cookie{}
	}
	if r.RewriteTo != "" {
		r.SetPath = ""
	}
	if r.Answer.Code != 0 { // then no Service gets the request
		r.AppRoot, r.MaxBody, r.SetPath, r.RewriteFrom, r.RewriteTo, r.Host, r.Prefix, r.SetRequest = "", "", "", "", "", "", "", ""
	}
}

func (r *reader) finishRate() {
	rate := &r.Rate
	if r.perS > 0 && rate.Requests == "" {
		burst := r.burst
		if burst == 0 {
			burst = 5
		}
		rate.Requests, rate.Period = strconv.Itoa(r.perS*burst), strconv.Itoa(burst)+"s"
	} else if rate.Requests != "" {
		rate.Period = r.period
		if r.period == "" {
			rate.Period = "1s"
		}
	}
	if !rate.Is() {
		*rate = Rate{}
		return
	}
	rate.Expire = "10m"
	if length(rate.Period) > length(rate.Expire) { // HAProxy must not forget an address within its period
		rate.Expire = rate.Period
	}
	if rate.Status == "" {
		rate.Status = "503"
	}
	if rate.Size == "" {
		rate.Size = "10240"
	}
}

func (r *reader) finishCanary(refuse func(name, reason string)) {
	c := &r.Canary
	if r.canaryOff { // as a normal Ingress it could get all requests
		*c = Canary{Is: true, Total: 100}
		return
	}
	if !c.Is {
		*c = Canary{}
		return
	}
	if c.Total == 0 {
		c.Total = 100
	}
	if c.Weight > c.Total {
		refuse("canary-weight", wrong(strconv.Itoa(c.Weight), "at most canary-weight-total, "+strconv.Itoa(c.Total)))
		c.Weight = 0
	}
	if c.Header == "" && (c.Value != "" || c.Pattern != "") {
		name := "canary-by-header-value"
		if c.Value == "" {
			name = "canary-by-header-pattern"
		}
		refuse(name, "there is no canary-by-header: name the header")
		c.Value, c.Pattern = "", ""
	}
	if c.Value != "" {
		c.Pattern = ""
	}
}
