package haproxycfg

import "strings"

// KnownKeyword reports whether a line of a section may start with the word, in any HAProxy
// from 2.6 to the current development version. The list comes from the configuration manuals
// and from HAProxy itself (haproxy -dKcfg). It has more words than client-native's parser,
// which lags behind and refuses some lines that HAProxy accepts.
func KnownKeyword(word string) bool {
	_, known := keywords[word]
	return known
}

var keywords = keywordSet() // never changes

func keywordSet() map[string]struct{} {
	set := make(map[string]struct{}, 700)
	for _, word := range strings.Fields(keywordList) {
		set[word] = struct{}{}
	}
	return set
}

const keywordList = `
.alert .diag .elif .else .endif .if .notice .warning 51degrees-allow-unmatched 51degrees-cache-size
51degrees-data-file 51degrees-difference 51degrees-drift 51degrees-property-name-list
51degrees-property-separator 51degrees-use-performance-graph 51degrees-use-predictive-graph accept
accepted_payload_size account-key acl acme acme-vars acme.scheduler add-acl add-header
add-headers-bin alias allow allow-0rtt alpn anonkey appsession args attach-srv auth backend
backing-file backlog balance be-unpublished bind bind-process bits block busy-polling ca-base
ca-file ca-verify-file cache cache-store cache-use capture challenge challenge-ready check chroot
ciphers ciphersuites client client-fin client-hs client-sigalgs cliexp clitcpka-cnt clitcpka-idle
clitcpka-intvl clitimeout close close-spread-time cluster-secret command compression connect
contact contimeout cookie cpu-affinity cpu-map cpu-policy cpu-set crl-file crt crt-base crt-store
curves daemon debug.counters declare default default-bind default-path default-server
default_backend defaults del-acl del-header del-headers-bin del-map deny description
deviceatlas-json-file deviceatlas-log-level deviceatlas-properties-cookie deviceatlas-separator
dgram-bind dgram-drop directory disable-l7-retry disabled dispatch dns-accept-family dns-delay
dns-timeout do-log do-resolve docroot domains dynamic-cookie-key eab-key-id eab-mac-alg eab-mac-key
early-hint early-hints ecdhe email-alert enabled error-log-format errorfile errorfiles errorloc
errorloc302 errorloc303 event expect-netscaler-cip expect-proxy experimental-mode expert-mode
expose-deprecated-directives expose-experimental-directives external-check fcgi-app fd-hard-limit
filter filter-sequence first force-be-switch force-cfg-parser-pause force-persist format frontend
fullconn generate-dummy gid global grace group groups guid h1-accept-payload-with-any-method
h1-case-adjust h1-case-adjust-file h1-do-not-close-on-insecure-transfer-encoding
h2-workaround-bogus-websocket-clients hard-stop-after harden.reject-privileged-ports.quic
harden.reject-privileged-ports.tcp hash hash-balance-factor hash-preserve-affinity hash-type
healthcheck hide-header hold http-after-response http-check http-err-codes http-error http-errors
http-fail-codes http-keep-alive http-request http-response http-reuse http-send-name-header
httpclient.resolvers.disabled httpclient.resolvers.id httpclient.resolvers.prefer
httpclient.retries httpclient.ssl.ca-file httpclient.ssl.verify httpclient.timeout.connect id if
ignore-persist index insecure-fork-wanted insecure-setuid-wanted ips issuer issuers-chain-path jwt
jwt.decrypt_alg_list jwt.decrypt_enc_list key key-base keytype ktls leastconn limited-quic listen
load load-server-state-from-file localpeer log log-format log-format-sd log-forward log-hash
log-profile log-send-hostname log-stderr log-steps log-tag lua-load lua-load-per-thread
lua-prepend-path mailer mailers map master-worker max-age max-frame-size max-keep-alive-queue
max-object-size max-secondary-entries max-session-srv-conns max-spread-checks max-threads-per-group
max-waiting-frames maxcompcpuusage maxcomprate maxconn maxconnrate maxerrrate maxlen maxpipes
maxsessrate maxsslconn maxsslrate maxzlibmem mcli-debug-mode messages mode monitor monitor-net
monitor-uri mworker-max-reloads nameserver nbproc nbthread no no-alpn no-ca-names
no-memory-trimming node noepoll noevports nogetaddrinfo nokqueue noktls nopoll noreuseport
normalize-uri nosplice npn numa-cpu-mapping ocsp ocsp-update ocsp-update.disable
ocsp-update.httpproxy ocsp-update.maxdelay ocsp-update.mindelay ocsp-update.mode on operator option
parse-resolv-conf pass-header path-info pause peer peers persist pidfile pp2-never-send-local
prealloc-fd presetenv process-vary profile profiling.memory profiling.tasks program provider-name
queue quic-initial quick-exit quiet rate-limit redirect redisp redispatch register-var-names reject
replace-header replace-path replace-pathq replace-uri replace-value reqadd reqallow reqdel reqdeny
reqiallow reqidel reqideny reqipass reqirep reqitarpit reqpass reqrep reqtarpit resetenv
resolution_pool_size resolve_retries resolvers retries retry-on return reuse-key ring roundrobin
rspadd rspdel rspdeny rspidel rspideny rspirep rsprep sc-add-gpc sc-inc-gpc sc-inc-gpc0 sc-inc-gpc1
sc-set-gpt sc-set-gpt0 sctl send-retry send-spoe-group server server-fin server-state-base
server-state-file server-state-file-name server-template set set-bandwidth-limit set-bc-mark
set-bc-tos set-dst set-dst-port set-dumpable set-fc-mark set-fc-tos set-header set-headers-bin
set-log-level set-map set-mark set-method set-nice set-param set-path set-pathq set-priority-class
set-priority-offset set-query set-retries set-src set-src-port set-status set-timeout set-tos
set-uri set-var set-var-fmt setcap setenv shards shm-stats-file shm-stats-file-max-objects sigalgs
silent-drop size source spoe-agent spoe-group spoe-message spread-checks srvexp srvtcpka-cnt
srvtcpka-idle srvtcpka-intvl srvtimeout ssl-default-bind-ciphers ssl-default-bind-ciphersuites
ssl-default-bind-client-sigalgs ssl-default-bind-curves ssl-default-bind-options
ssl-default-bind-sigalgs ssl-default-server-ciphers ssl-default-server-ciphersuites
ssl-default-server-client-sigalgs ssl-default-server-curves ssl-default-server-options
ssl-default-server-sigalgs ssl-dh-param-file ssl-engine ssl-f-use ssl-load-extra-del-ext
ssl-load-extra-files ssl-max-ver ssl-min-ver ssl-mode-async ssl-passphrase-cmd ssl-propquery
ssl-provider ssl-provider-path ssl-security-level ssl-server-verify ssl-skip-self-issued-ca
static-rr stats stats-file stick stick-table sticky stress-level strict-limits strict-mode
switch-mode table tarpit tcp-check tcp-request tcp-response thread-group thread-groups
thread-hard-limit timeout total-max-size trace traces track-sc0 track-sc1 track-sc2 transparent
tune.applet.zero-copy-forwarding tune.buffers.limit tune.buffers.reserve tune.bufsize
tune.bufsize.large tune.bufsize.small tune.chksize tune.cli.max-payload-size tune.comp.maxlevel
tune.defaults.purge tune.disable-fast-forward tune.disable-zero-copy-forwarding
tune.epoll.mask-events tune.events.max-events-at-once tune.fail-alloc tune.fd.edge-triggered
tune.fd.tables tune.glitches.kill.cpu-usage tune.h1.be.glitches-threshold
tune.h1.fe.glitches-threshold tune.h1.zero-copy-fwd-recv tune.h1.zero-copy-fwd-send
tune.h2.be.glitches-threshold tune.h2.be.initial-window-size tune.h2.be.max-concurrent-streams
tune.h2.be.max-frames-at-once tune.h2.be.rxbuf tune.h2.fe.glitches-threshold
tune.h2.fe.initial-window-size tune.h2.fe.max-concurrent-streams tune.h2.fe.max-frames-at-once
tune.h2.fe.max-rst-at-once tune.h2.fe.max-total-streams tune.h2.fe.rxbuf tune.h2.header-table-size
tune.h2.initial-window-size tune.h2.log-errors tune.h2.max-concurrent-streams
tune.h2.max-frame-size tune.h2.zero-copy-fwd-send tune.http.cookielen tune.http.logurilen
tune.http.maxhdr tune.idle-pool.shared tune.idletimer tune.listener.default-shards
tune.listener.multi-queue tune.lua.bool-sample-conversion tune.lua.burst-timeout
tune.lua.forced-yield tune.lua.log.loggers tune.lua.log.stderr tune.lua.maxmem tune.lua.openlibs
tune.lua.service-timeout tune.lua.session-timeout tune.lua.task-timeout tune.max-checks-per-thread
tune.max-rules-at-once tune.maxaccept tune.maxpollevents tune.maxrewrite tune.memory.hot-size
tune.notsent-lowat.client tune.notsent-lowat.server tune.pattern.cache-size
tune.peers.max-updates-at-once tune.pipesize tune.pool-high-fd-ratio tune.pool-low-fd-ratio
tune.pt.zero-copy-forwarding tune.quic.be.cc.cubic-min-losses tune.quic.be.cc.hystart
tune.quic.be.cc.max-frame-loss tune.quic.be.cc.max-win-size tune.quic.be.cc.reorder-ratio
tune.quic.be.max-idle-timeout tune.quic.be.sec.glitches-threshold tune.quic.be.stream.data-ratio
tune.quic.be.stream.max-concurrent tune.quic.be.stream.rxbuf tune.quic.be.tx.pacing
tune.quic.be.tx.udp-gso tune.quic.fe.cc.cubic-min-losses tune.quic.fe.cc.hystart
tune.quic.fe.cc.max-frame-loss tune.quic.fe.cc.max-win-size tune.quic.fe.cc.reorder-ratio
tune.quic.fe.max-idle-timeout tune.quic.fe.sec.glitches-threshold tune.quic.fe.sec.retry-threshold
tune.quic.fe.sock-per-conn tune.quic.fe.stream.data-ratio tune.quic.fe.stream.max-concurrent
tune.quic.fe.stream.max-total tune.quic.fe.stream.rxbuf tune.quic.fe.tx.pacing
tune.quic.fe.tx.udp-gso tune.quic.frontend.conn-tx-buffers.limit
tune.quic.frontend.max-idle-timeout tune.quic.frontend.max-streams-bidi tune.quic.listen
tune.quic.mem.tx-max tune.quic.retry-threshold tune.quic.zero-copy-fwd-send tune.rcvbuf.backend
tune.rcvbuf.client tune.rcvbuf.frontend tune.rcvbuf.server tune.recv_enough tune.renice.runtime
tune.renice.startup tune.ring.queues tune.runqueue-depth tune.sched.low-latency tune.sndbuf.backend
tune.sndbuf.client tune.sndbuf.frontend tune.sndbuf.server tune.ssl.cachesize
tune.ssl.capture-buffer-size tune.ssl.capture-cipherlist-size tune.ssl.certificate-compression
tune.ssl.default-dh-param tune.ssl.force-private-cache tune.ssl.hard-maxrecord tune.ssl.keylog
tune.ssl.keyupdate-rate-limit tune.ssl.lifetime tune.ssl.maxrecord tune.ssl.ocsp-update.maxdelay
tune.ssl.ocsp-update.mindelay tune.ssl.ssl-ctx-cache-size tune.stick-counters
tune.streams-elasticity tune.takeover-other-tg-connections tune.vars.check-max-size
tune.vars.global-max-size tune.vars.proc-max-size tune.vars.reqres-max-size tune.vars.sess-max-size
tune.vars.txn-max-size tune.zlib.memlevel tune.zlib.windowsize tunnel type uid ulimit-n
unique-id-format unique-id-header unix-bind unless unset-param unset-var unsetenv uri url_param
use-backend use-fcgi-app use-server use-service use_backend user userlist usesrc verify
wait-for-body wait-for-handshake warn-blocked-traffic-after wurfl-cache-size wurfl-data-file
wurfl-information-list wurfl-information-list-separator wurfl-patch-file zero-warning
`
