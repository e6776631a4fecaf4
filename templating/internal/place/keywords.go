package place

import "strings"

// keywords are the words that begin a line of a configuration, of HAProxy 2.6
// and 3.2 (sections 3 and 4.1 of the manuals, and what haproxy -dKcfg lists).
// A value that is none of them, nor in the table of directives, makes a line
// that HAProxy does not accept.
var keywords = wordSet(`
accept allow anonkey bind boolean busy-polling ca-base ca-file ca-verify-file chroot ciphers ciphersuites client-sigalgs clitcpka-cnt clitcpka-idle
clitcpka-intvl clitimeout close close-spread-time cluster-secret compression contimeout cpu-map cpu-policy cpu-set crl-file crt crt-base crt-list
daemon debug.counters declare default-path description deviceatlas-json-file deviceatlas-log-level deviceatlas-properties-cookie deviceatlas-separator
dgram-drop disable-l7-retry dns-accept-family errorfile errorfiles errorloc errorloc302 errorloc303 expose-deprecated-directives
expose-experimental-directives external-check fd-hard-limit filter force-cfg-parser-pause gid global grace group h1-accept-payload-with-any-method
h1-case-adjust h1-case-adjust-file h1-do-not-close-on-insecure-transfer-encoding h2-workaround-bogus-websocket-clients hard-stop-after
harden.reject-privileged-ports.quic harden.reject-privileged-ports.tcp http-after-response http-check http-error http-request http-response
httpclient.resolvers.disabled httpclient.resolvers.id httpclient.resolvers.prefer httpclient.retries httpclient.ssl.ca-file httpclient.ssl.verify
httpclient.timeout.connect insecure-fork-wanted insecure-setuid-wanted issuer issuers-chain-path key key-base listen load localpeer log
log-send-hostname log-tag lua-load lua-load-per-thread lua-prepend-path max-keep-alive-queue max-spread-checks maxcompcpuusage maxcomprate maxconn
maxconnrate maxpipes maxsessrate maxsslconn maxsslrate maxzlibmem mworker-max-reloads name nbthread no-alpn no-ca-names no-memory-trimming node
noepoll noevports nogetaddrinfo nokqueue nopoll noreuseport nosplice numa-cpu-mapping ocsp ocsp-update ocsp-update.disable ocsp-update.httpproxy
ocsp-update.maxdelay ocsp-update.mindelay ocsp-update.mode option peers pidfile pp2-never-send-local prealloc-fd presetenv profiling.memory
profiling.tasks quiet rate-limit recv-only reject resetenv retry-on sctl send-retry server server-state-base server-state-file set-dumpable set-var
set-var-fmt setenv sigalgs silent-drop spread-checks srvtcpka-cnt srvtcpka-idle srvtcpka-intvl srvtimeout ssl-default-bind-ciphers
ssl-default-bind-ciphersuites ssl-default-bind-client-sigalgs ssl-default-bind-curves ssl-default-bind-options ssl-default-bind-sigalgs
ssl-default-server-ciphers ssl-default-server-ciphersuites ssl-default-server-client-sigalgs ssl-default-server-curves ssl-default-server-options
ssl-default-server-sigalgs ssl-dh-param-file ssl-engine ssl-load-extra-del-ext ssl-load-extra-files ssl-max-ver ssl-min-ver ssl-mode-async
ssl-propquery ssl-provider ssl-provider-path ssl-security-level ssl-server-verify ssl-skip-self-issued-ca stats stats-file strict-limits string
tcp-check tcp-request tcp-response thread-group thread-groups timeout tune.applet.zero-copy-forwarding tune.buffers.limit tune.buffers.reserve
tune.bufsize tune.bufsize.small tune.comp.maxlevel tune.disable-fast-forward tune.disable-zero-copy-forwarding tune.epoll.mask-events
tune.events.max-events-at-once tune.fail-alloc tune.fd.edge-triggered tune.h1.zero-copy-fwd-recv tune.h1.zero-copy-fwd-send
tune.h2.be.glitches-threshold tune.h2.be.initial-window-size tune.h2.be.max-concurrent-streams tune.h2.be.rxbuf tune.h2.fe.glitches-threshold
tune.h2.fe.initial-window-size tune.h2.fe.max-concurrent-streams tune.h2.fe.max-total-streams tune.h2.fe.rxbuf tune.h2.header-table-size
tune.h2.initial-window-size tune.h2.max-concurrent-streams tune.h2.max-frame-size tune.h2.zero-copy-fwd-send tune.http.cookielen tune.http.logurilen
tune.http.maxhdr tune.idle-pool.shared tune.idletimer tune.listener.multi-queue tune.lua.bool-sample-conversion tune.lua.burst-timeout
tune.lua.forced-yield tune.lua.log.loggers tune.lua.log.stderr tune.lua.maxmem tune.lua.service-timeout tune.lua.session-timeout tune.lua.task-timeout
tune.max-checks-per-thread tune.max-rules-at-once tune.maxaccept tune.maxpollevents tune.maxrewrite tune.memory.hot-size tune.pattern.cache-size
tune.peers.max-updates-at-once tune.pipesize tune.pool-high-fd-ratio tune.pool-low-fd-ratio tune.pt.zero-copy-forwarding tune.quic.cc-hystart
tune.quic.disable-tx-pacing tune.quic.disable-udp-gso tune.quic.frontend.conn-tx-buffers.limit tune.quic.frontend.default-max-window-size
tune.quic.frontend.glitches-threshold tune.quic.frontend.max-data-size tune.quic.frontend.max-idle-timeout tune.quic.frontend.max-streams-bidi
tune.quic.frontend.max-tx-mem tune.quic.frontend.stream-data-ratio tune.quic.max-frame-loss tune.quic.reorder-ratio tune.quic.retry-threshold
tune.quic.socket-owner tune.quic.zero-copy-fwd-send tune.rcvbuf.backend tune.rcvbuf.client tune.rcvbuf.frontend tune.rcvbuf.server tune.recv_enough
tune.renice.runtime tune.renice.startup tune.ring.queues tune.runqueue-depth tune.sched.low-latency tune.sndbuf.backend tune.sndbuf.client
tune.sndbuf.frontend tune.sndbuf.server tune.ssl.cachesize tune.ssl.capture-buffer-size tune.ssl.capture-cipherlist-size tune.ssl.default-dh-param
tune.ssl.force-private-cache tune.ssl.hard-maxrecord tune.ssl.keylog tune.ssl.lifetime tune.ssl.maxrecord tune.ssl.ssl-ctx-cache-size
tune.stick-counters tune.takeover-other-tg-connections tune.vars.check-max-size tune.vars.global-max-size tune.vars.proc-max-size
tune.vars.reqres-max-size tune.vars.sess-max-size tune.vars.txn-max-size tune.zlib.memlevel tune.zlib.windowsize uid ulimit-n unix-bind unsetenv
use-fcgi-app user userlist wait-for-handshake warn-blocked-traffic-after wurfl-cache-size wurfl-data-file wurfl-information-list
wurfl-information-list-separator zero-warning
.if .elif .else .endif .diag .notice .warning .alert no default
`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// isKeyword reports whether HAProxy knows a line that begins with the word.
func isKeyword(word string) bool { return keywords[word] || directives[word] != nil }

// isKeywordPart reports whether HAProxy knows a line that begins with a word in
// which the text is. Digits alone choose none.
func isKeywordPart(text string) bool {
	if strings.Trim(text, "0123456789") == "" {
		return false
	}
	for word := range keywords {
		if strings.Contains(word, text) {
			return true
		}
	}
	for word := range directives {
		if strings.Contains(word, text) {
			return true
		}
	}
	return false
}
