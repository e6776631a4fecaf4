package place

import "strings"

// what says how HAProxy reads a word of a line, or a part of one.
type what byte

const (
	asText     what = 't' // as it is
	asWord     what = 'w' // not known; in the table, a word of HAProxy's that a value may choose
	asOption   what = 'o' // the name of an option, which a value may not choose
	asKeyword  what = 'k' // the first word of a line
	asUnknown  what = 'u' // the first word of a macro, which may stand anywhere
	asName     what = 'n' // of a section, server, ACL
	asMethod   what = 'm' // how patterns match: what follows -m
	asVariable what = 'v' // of HAProxy: txn.host
	asHeader   what = 'h' // name of a header
	asAddress  what = 'a' // address and port
	asFile     what = 'f' // path of a file
	asFormat   what = 'l' // log-format string (section 8.2.6 of the manual of 3.2)
	asReplace  what = 'R' // log-format string in which \1 is a group of a regular expression
	asSubst    what = 'S' // the same without the log-format
	asNameOf   what = 'N' // a name that may be a log-format string
	asSample   what = 'e' // sample expression (section 7.1)
	asRegexp   what = 'r'
	asPattern  what = 'p' // first pattern of an ACL, where flags may stand
	asLater    what = 'P' // further patterns
	asArgument what = 'A' // argument of a sample fetch or converter
	asFetch    what = 'x' // name of a sample fetch, a converter or a service
	asEnv      what = 'E' // name of a variable of the environment
	asStrict   what = 's' // behind a parenthesis or a %[ of a word that is not known
	asComment  what = '#'

	asNumber     what = 'D' // a number, a size or a time, or a sample expression in its place
	asValue      what = 'W' // text before which options may stand, so that it cannot be one
	asURI        what = 'U' // URI, method or version of a request: its line has spaces between them
	asURIFormat  what = 'L' // the same in a log-format string
	asURIReplace what = 'Y' // the same in a replacement
	asPathFormat what = 'H' // the same for what cannot have a query
	asPathRepl   what = 'J'
	asCookie     what = 'c' // name or value of a cookie
	asCookieFmt  what = 'C' // the same in a log-format string
	asQuoted     what = 'Q' // HAProxy puts it between double quotes of HTTP (RFC 9110, section 5.6.4)
	asAuth       what = 'b' // user:password
	asSocket     what = 'q' // path of a UNIX socket
	asList       what = 'i' // words with commas between them, which may have parentheses
)

// form is what is known of the words behind a keyword.
type form struct {
	args    string           // what the next words are, one letter each
	options map[string]*form // what each later word may be, nil for nothing known
	inside  what             // what the parentheses of the keyword hold: set-var(...)
	acl     bool             // a sample expression and patterns follow the arguments
}

// directives is the table of what stands where, from sections 3 to 5, 7 and 10
// to 13 of the configuration manuals of HAProxy 2.6 and 3.2. A line has a
// keyword and the letters of its arguments, then options with the letters of
// theirs; "@" before a word takes over the options of a list. Options may stand
// before an argument that is asWord. A word that the table does not have is
// asWord where the line, or the option before it, is not known either: it may be
// the value of that.
var directives = parseDirectives(lists, sectionsTable+actionsTable+serversTable+globalTable)

// lists are options that several directives have.
const lists = `
reply status:t content-type:t string:t lf-string:l file:f lf-file:f errorfile:f errorfiles:n hdr:hl deny_status:t
redirect location:l prefix:l scheme:l code:t set-cookie:c set-cookie-fmt:C clear-cookie:c append-slash: drop-query: ignore-empty: keep-query:
table type:t len:t size:t expire:t store:i peers:n srvkey:t write-to:n nopurge: recv-only:
plainredirect location:t prefix:t scheme:t code:t set-cookie:c set-cookie-fmt:C clear-cookie:c append-slash: drop-query: ignore-empty: keep-query:
statsauth allow: deny: auth: realm:Q
server addr:a agent-addr:a agent-inter:t agent-port:t agent-send:t alpn:t ca-file:f check-alpn:t check-proto:t check-sni:t ciphers:t ciphersuites:t client-sigalgs:t cookie:c crl-file:f crt:f curves:t downinter:t error-limit:t fall:t fastinter:t guid:n hash-key:t id:t idle-ping:t init-addr:t init-state:t inter:t log-bufsize:t log-proto:t max-reuse:t maxconn:t maxqueue:t minconn:t namespace:t npn:t observe:t on-error:t on-marked-down:t on-marked-up:t pool-conn-name:e pool-low-conn:t pool-max-conn:t pool-purge-delay:t port:t proto:t redir:t resolve-net:t resolve-opts:t resolve-prefer:t resolvers:n rise:t shard:t sigalgs:t slowstart:t sni:e socks4:a source:a interface:t ssl-max-ver:t ssl-min-ver:t tcp-ut:t track:t usesrc:a verify:t verifyhost:t weight:t ws:t set-proxy-v2-tlv-fmt(v:l agent-check: allow-0rtt: backup: check: check-reuse-pool: check-send-proxy: check-ssl: check-via-socks4: disabled: enabled: force-sslv3: force-tlsv10: force-tlsv11: force-tlsv12: force-tlsv13: no-agent-check: no-backup: no-check: no-check-send-proxy: no-check-ssl: no-renegotiate: no-send-proxy: no-send-proxy-v2: no-send-proxy-v2-ssl: no-send-proxy-v2-ssl-cn: no-sni-auto: no-ssl: no-ssl-reuse: no-sslv3: no-strict-maxconn: no-tfo: no-tls-tickets: no-tlsv10: no-tlsv11: no-tlsv12: no-tlsv13: no-verifyhost: non-stick: proxy-v2-options:t renegotiate: send-proxy: send-proxy-v2: send-proxy-v2-ssl: send-proxy-v2-ssl-cn: sni-auto: ssl: ssl-reuse: ssl-ocsp-update: stick: strict-maxconn: tfo: tls-tickets:
bind accept-netscaler-cip:t alpn:t backlog:t ca-file:f ca-sign-file:f ca-sign-pass:t ca-verify-file:f ca-ignore-err:t ciphers:t ciphersuites:t client-sigalgs:t crl-file:f crt:f crt-ignore-err:t crt-list:f curves:t default-crt:f ecdhe:t gid:t group:t guid-prefix:n id:t idle-ping:t interface:t label:t level:t maxconn:t mode:t mss:t name:n namespace:t nice:t npn:t process:t proto:t quic-cc-algo:t quic-socket:t severity-output:t shards:t sigalgs:t ssl-max-ver:t ssl-min-ver:t tcp-ut:t thread:t tls-ticket-keys:f uid:t user:t verify:t accept-proxy: allow-0rtt: defer-accept: expose-fd:t force-sslv3: force-tlsv10: force-tlsv11: force-tlsv12: force-tlsv13: generate-certificates: no-alpn: no-ca-names: no-sslv3: no-strict-sni: no-tls-tickets: no-tlsv10: no-tlsv11: no-tlsv12: no-tlsv13: prefer-client-ciphers: quic-force-retry: ssl: strict-sni: tcp-md5sig:t tfo: transparent: v4v6: v6only:
expect comment:t min-recv:t ok-status:t error-status:t tout-status:t on-success:l on-error:l status-code:e rstatus:r rstring:r status:t string:t string-lf:l rbinary:r binary:t binary-lf:l hdr: fhdr: name:W name-lf:l value:W value-lf:l -m:m
send meth:h uri:U uri-lf:L ver:U hdr:hl body:t body-lf:l comment:t
connect default: linger: send-proxy: ssl: via-socks4: addr:a port:D sni:t alpn:t proto:t comment:t
action accept: allow: close: deny: reject: dgram-drop: disable-l7-retry: pause:D set-timeout:tD set-bandwidth-limit:n limit:D period:D set-retries:D switch-mode:t use-service:x wait-for-handshake: normalize-uri:t add-acl(f:l del-acl(f:l set-map(f:ll del-map(f:l set-var(v:e set-var-fmt(v:l unset-var(v: add-header:hl set-header:hl early-hint:hl del-header:n -m:m replace-header:hrR replace-value:hrR replace-path:rJ replace-pathq:rY replace-uri:rY set-method:N set-path:H set-pathq:L set-query:L set-uri:L set-status:t reason:t set-log-level:t set-mark:D set-tos:D set-nice:t set-fc-mark:D set-bc-mark:D set-fc-tos:D set-bc-tos:D set-priority-class:e set-priority-offset:e set-src:e set-dst:e set-src-port:e set-dst-port:e sc-set-gpt(n:D sc-set-gpt0(n:D sc-add-gpc(n:D sc-inc-gpc(n: sc-inc-gpc0(n: sc-inc-gpc1(n: do-resolve(v:e do-log: capture:e len:t id:t track-sc0:e track-sc1:e track-sc2:e table:n auth: realm:Q cache-use:n cache-store:n wait-for-body: time:t at-least:t send-spoe-group:tt strict-mode:t attach-srv:n name:e expect-proxy: expect-netscaler-cip: silent-drop: rst-ttl:t
`

const sectionsTable = `
defaults n from:n
frontend n from:n
backend n from:n
listen n from:n
peers n
resolvers n
userlist n
mailers n
program n
ring n
cache n
http-errors n
fcgi-app n
log-forward n
log-profile n
crt-store n
acme n
`

const actionsTable = `
acl n acl
http-request . @action return:@reply deny:@reply tarpit:@reply redirect:@redirect
http-response . @action return:@reply deny:@reply redirect:@redirect
http-after-response . @action
tcp-request . connection:@action content:@action session:@action inspect-delay:t
tcp-response . content:@action inspect-delay:t
quic-initial . @action
redirect . @plainredirect
http-error . @reply
errorfile tf
errorfiles n
errorloc tt
errorloc302 tt
errorloc303 tt
http-check . expect:@expect send:@send connect:@connect comment:t set-var(v:e set-var-fmt(v:l unset-var(v:
tcp-check . expect:@expect send:t send-lf:l send-binary:t send-binary-lf:l connect:@connect comment:t set-var(v:e set-var-fmt(v:l unset-var(v:
use_backend N
use-server N
default_backend n
stick . on:e match:e store-request:e store-response:e table:n
stick-table . @table
table n @table
balance w url_param:t hash:e hdr(h: rdp-cookie(n: uri len:t depth:t
log-format l
log-format-sd l
error-log-format l
unique-id-format l
unique-id-header h
monitor-uri t
cookie c rewrite: insert: prefix: indirect: nocache: postonly: preserve: httponly: secure: dynamic: domain:t maxidle:t maxlife:t attr:t
capture . cookie:c request: response: header:h len:t
http-send-name-header h
option . httpchk:UUUl smtpchk:UU mysql-check: user:t post-41: pre-41: post-80: pgsql-check: forwardfor: originalto: except:t header:h if-none: forwarded: proto: host: by: for: by_port: for_port: host-expr:e by-expr:e for-expr:e by_port-expr:e for_port-expr:e
force-persist . if
ignore-persist . if
compression . algo:tttttttttttttttt algo-req:t algo-res:tttttttttttttttt type:tttttttttttttttt type-req:tttttttttttttttt type-res:tttttttttttttttt direction:t
timeout wt
retry-on tttttttttttttttt
description tttttttttttttttt
id t
mode t
retries t
fullconn t
dynamic-cookie-key t
source a usesrc:a interface:t
filter . config:f engine:n
email-alert . to:t from:t level:t mailers:n myhostname:t
stats . admin: enable: hide-version: show-desc:tttttttttttttttt show-legends: show-modules: show-node:t expose-fd:t uri:t auth:b realm:Q refresh:t scope:t timeout:t maxconn:t level:t mode:t user:t group:t uid:t gid:t bind-process:t socket:q http-request:@statsauth
declare . len:t
rate-limit . sessions:t
external-check . path:t command:f
pass-header h
set-param tl
docroot f
index t
path-info r
log-stderr aww len:t format:t sample:t profile:n
on t drop: format:l sd:l
`

const serversTable = `
server na @server
server-template nta @server
default-server . @server
peer na @server
bind a @bind
dgram-bind a @bind
log aww len:t format:t sample:t profile:n
nameserver na
mailer na
hold tt
resolve_retries t
accepted_payload_size t
parse-resolv-conf .
user n password:t insecure-password:t groups:t
group n users:t
load . crt:f key:f ocsp:f issuer:f sctl:f alias:t domains:t
crt-base f
key-base f
timeout wt
max-age t
max-object-size t
total-max-size t
size t
`

const globalTable = `
chroot f
pidfile f
ca-base f
lua-load f
lua-load-per-thread f
localpeer n
log-tag t
log-send-hostname t
node t
maxconn t
nbthread t
hard-stop-after t
grace t
uid t
gid t
setenv Et
presetenv Et
unsetenv EEEEEEEEEEEEEEEE
resetenv EEEEEEEEEEEEEEEE
issuers-chain-path f
server-state-base f
server-state-file f
ssl-default-bind-ciphers t
ssl-default-bind-ciphersuites t
ssl-default-server-ciphers t
ssl-default-server-ciphersuites t
ssl-dh-param-file f
set-var ve
set-var-fmt vl
`

func parseDirectives(lists, table string) map[string]*form {
	known := map[string]map[string]*form{}
	for line := range strings.Lines(lists) {
		if words := strings.Fields(line); len(words) > 0 {
			known[words[0]] = parseOptions(words[1:], known)
		}
	}
	forms := map[string]*form{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		f := &form{args: strings.Trim(words[1], ".")}
		if f.acl = len(words) > 2 && words[2] == "acl"; !f.acl {
			f.options = parseOptions(words[2:], known)
		}
		forms[words[0]] = f
	}
	return forms
}

// parseOptions reads "word:args", "word(inside:args", "word:@list" and "@list".
func parseOptions(words []string, known map[string]map[string]*form) map[string]*form {
	options := map[string]*form{}
	for _, word := range words {
		if list, ok := strings.CutPrefix(word, "@"); ok {
			for name, f := range known[list] {
				options[name] = f
			}
			continue
		}
		name, args, _ := strings.Cut(word, ":")
		f := &form{}
		if list, ok := strings.CutPrefix(args, "@"); ok {
			f.options = known[list]
		} else {
			f.args = args
		}
		if i := strings.IndexByte(name, '('); i >= 0 {
			f.inside, name = what(name[i+1]), name[:i+1]
		}
		options[name] = f
	}
	return options
}
