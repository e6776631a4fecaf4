package haproxymodel

import (
	parser "github.com/haproxytech/client-native/v6/config-parser"
	"github.com/haproxytech/client-native/v6/config-parser/common"
	"github.com/haproxytech/client-native/v6/config-parser/parsers"
	"github.com/haproxytech/client-native/v6/config-parser/parsers/filters"
	"github.com/haproxytech/client-native/v6/config-parser/parsers/http"
	"github.com/haproxytech/client-native/v6/config-parser/parsers/quic"
	"github.com/haproxytech/client-native/v6/config-parser/parsers/tcp"
	"github.com/haproxytech/client-native/v6/configuration"
	"github.com/haproxytech/client-native/v6/configuration/options"
	"github.com/haproxytech/client-native/v6/models"
)

// writeOptions makes client-native write times as plain milliseconds.
func writeOptions() *options.ConfigurationOptions {
	return &options.ConfigurationOptions{PreferredTimeSuffix: "none"}
}

// parent is a kind of section as the children see it.
type parent struct{ name, path string }

// row makes the descriptor of children that client-native reads as a list and
// writes one by one.
func row[T any, S ~[]*T, D any](c Child, parse func(p parser.Parser, name string) (S, error), write func(T) (D, error), lines func() lineParser) Child {
	c.parse = func(p parser.Parser, name string) (any, error) { return parse(p, name) }
	c.write = func(model any) (common.ParserData, error) { return write(*model.(*T)) }
	c.lines = lines
	return c
}

// sure is a writer that cannot fail.
func sure[T, D any](write func(T) D) func(T) (D, error) {
	return func(m T) (D, error) { return write(m), nil }
}

// with is a writer that wants options.
func with[T, D any](write func(T, *options.ConfigurationOptions) D) func(T) (D, error) {
	return func(m T) (D, error) { return write(m, writeOptions()), nil }
}

// of makes the parent known to a reader that serves several kinds.
func of[S any](parse func(parent, name string, p parser.Parser) (S, error), parent string) func(parser.Parser, string) (S, error) {
	return func(p parser.Parser, name string) (S, error) { return parse(parent, name, p) }
}

// only is a reader that serves one kind.
func only[S any](parse func(name string, p parser.Parser) (S, error)) func(parser.Parser, string) (S, error) {
	return func(p parser.Parser, name string) (S, error) { return parse(name, p) }
}

func acls(at parent) Child {
	return row(Child{Field: "ACLList", Kind: "acl", Words: "acl", Path: at.path + "/acls"},
		func(p parser.Parser, name string) (models.Acls, error) {
			return configuration.ParseACLs(parser.Section(at.name), name, p)
		},
		sure(configuration.SerializeACL), func() lineParser { return &parsers.ACL{} })
}

func binds(at parent) Child {
	return row(Child{Field: "Binds", Kind: "bind", Key: "Name", Words: "bind", Path: at.path + "/binds"},
		of(configuration.ParseBinds, at.name), with(configuration.SerializeBind), func() lineParser { return &parsers.Bind{} })
}

func dgramBinds(at parent) Child {
	return row(Child{Field: "DgramBinds", Kind: "dgram-bind", Key: "Name", Words: "dgram-bind", Path: at.path + "/dgram_binds"},
		only(configuration.ParseDgramBinds), sure(configuration.SerializeDgramBind), func() lineParser { return &parsers.DgramBind{} })
}

func servers(at parent) Child {
	return row(Child{Field: "Servers", Kind: "server", Key: "Name", Words: "server", Path: at.path + "/servers"},
		of(configuration.ParseServers, at.name), with(configuration.SerializeServer), func() lineParser { return &parsers.Server{} })
}

func serverTemplates(at parent) Child {
	return row(Child{Field: "ServerTemplates", Kind: "server-template", Key: "Prefix", Words: "server-template", Path: at.path + "/server_templates"},
		only(configuration.ParseServerTemplates), with(configuration.SerializeServerTemplate), func() lineParser { return &parsers.ServerTemplate{} })
}

func serverSwitchingRules(at parent) Child {
	return row(Child{Field: "ServerSwitchingRuleList", Kind: "use-server rule", Words: "use-server", Path: at.path + "/server_switching_rules"},
		only(configuration.ParseServerSwitchingRules), sure(configuration.SerializeServerSwitchingRule), func() lineParser { return &parsers.UseServer{} })
}

func backendSwitchingRules(at parent) Child {
	return row(Child{Field: "BackendSwitchingRuleList", Kind: "use_backend rule", Words: "use_backend", Path: at.path + "/backend_switching_rules"},
		only(configuration.ParseBackendSwitchingRules), sure(configuration.SerializeBackendSwitchingRule), func() lineParser { return &parsers.UseBackend{} })
}

func captures(at parent) Child {
	return row(Child{Field: "CaptureList", Kind: "declare capture", Words: "declare", Path: at.path + "/captures"},
		only(configuration.ParseDeclareCaptures), sure(configuration.SerializeDeclareCapture), func() lineParser { return &parsers.DeclareCapture{} })
}

func stickRules(at parent) Child {
	return row(Child{Field: "StickRuleList", Kind: "stick rule", Words: "stick", Path: at.path + "/stick_rules"},
		only(configuration.ParseStickRules), sure(configuration.SerializeStickRule), func() lineParser { return &parsers.Stick{} })
}

func filterList(at parent) Child {
	return row(Child{Field: "FilterList", Kind: "filter", Words: "filter", Path: at.path + "/filters"},
		of(configuration.ParseFilters, at.name), with(configuration.SerializeFilter), func() lineParser { return &filters.Filters{} })
}

func logTargets(at parent) Child {
	return row(Child{Field: "LogTargetList", Kind: "log target", Words: "log", Path: at.path + "/log_targets"},
		of(configuration.ParseLogTargets, at.name), sure(configuration.SerializeLogTarget), func() lineParser { return &parsers.Log{} })
}

func sslFrontUses(at parent) Child {
	return row(Child{Field: "SSLFrontUses", Kind: "ssl-f-use", Words: "ssl-f-use", Path: at.path + "/ssl_front_uses", Append: true},
		of(configuration.ParseSSLFrontUses, at.name), sure(configuration.SerializeSSLFrontUse), func() lineParser { return &parsers.SSLFrontUse{} })
}

func quicInitialRules(at parent) Child {
	return row(Child{Field: "QUICInitialRuleList", Kind: "quic-initial rule", Words: "quic-initial", Path: at.path + "/quic_initial_rules"},
		of(configuration.ParseQUICInitialRules, at.name), configuration.SerializeQUICInitialRule, func() lineParser { return &quic.Initial{} })
}

func tcpRequestRules(at parent) Child {
	return row(Child{Field: "TCPRequestRuleList", Kind: "tcp-request rule", Words: "tcp-request", Path: at.path + "/tcp_request_rules"},
		of(configuration.ParseTCPRequestRules, at.name), withErr(configuration.SerializeTCPRequestRule), func() lineParser { return &tcp.Requests{} })
}

func tcpResponseRules(at parent) Child {
	return row(Child{Field: "TCPResponseRuleList", Kind: "tcp-response rule", Words: "tcp-response", Path: at.path + "/tcp_response_rules"},
		of(configuration.ParseTCPResponseRules, at.name), withErr(configuration.SerializeTCPResponseRule), func() lineParser { return &tcp.Responses{} })
}

func tcpChecks(at parent) Child {
	return row(Child{Field: "TCPCheckRuleList", Kind: "tcp-check rule", Words: "tcp-check", Path: at.path + "/tcp_checks"},
		of(configuration.ParseTCPChecks, at.name), configuration.SerializeTCPCheck, func() lineParser { return &tcp.Checks{} })
}

func httpChecks(at parent) Child {
	return row(Child{Field: "HTTPCheckList", Kind: "http-check rule", Words: "http-check", Path: at.path + "/http_checks"},
		of(configuration.ParseHTTPChecks, at.name), configuration.SerializeHTTPCheck, func() lineParser { return &http.Checks{Mode: at.name} })
}

func httpRequestRules(at parent) Child {
	return row(Child{Field: "HTTPRequestRuleList", Kind: "http-request rule", Words: "http-request", Path: at.path + "/http_request_rules"},
		of(configuration.ParseHTTPRequestRules, at.name), withErr(configuration.SerializeHTTPRequestRule), func() lineParser { return &http.Requests{Mode: at.name} })
}

func httpResponseRules(at parent) Child {
	return row(Child{Field: "HTTPResponseRuleList", Kind: "http-response rule", Words: "http-response", Path: at.path + "/http_response_rules"},
		of(configuration.ParseHTTPResponseRules, at.name), withErr(configuration.SerializeHTTPResponseRule), func() lineParser { return &http.Responses{Mode: at.name} })
}

func httpAfterResponseRules(at parent) Child {
	return row(Child{Field: "HTTPAfterResponseRuleList", Kind: "http-after-response rule", Words: "http-after-response", Path: at.path + "/http_after_response_rules"},
		of(configuration.ParseHTTPAfterRules, at.name), configuration.SerializeHTTPAfterRule, func() lineParser { return &http.AfterResponses{} })
}

func httpErrorRules(at parent) Child {
	return row(Child{Field: "HTTPErrorRuleList", Kind: "http-error rule", Words: "http-error", Path: at.path + "/http_error_rules"},
		of(configuration.ParseHTTPErrorRules, at.name), configuration.SerializeHTTPErrorRule, func() lineParser { return &http.HTTPErrors{} })
}

// withErr is a writer that wants options and can fail.
func withErr[T, D any](write func(T, *options.ConfigurationOptions) (D, error)) func(T) (D, error) {
	return func(m T) (D, error) { return write(m, writeOptions()) }
}

func nameservers() Child {
	return row(Child{Field: "Nameservers", Kind: "nameserver", Key: "Name", Words: "nameserver", Path: "nameservers?resolver={parent}"},
		only(configuration.ParseNameservers), sure(configuration.SerializeNameserver), func() lineParser { return &parsers.Nameserver{} })
}

func peerEntries() Child {
	return row(Child{Field: "PeerEntries", Kind: "peer", Key: "Name", Words: "peer", Path: "peer_entries?peer_section={parent}"},
		only(configuration.ParsePeerEntries), sure(configuration.SerializePeerEntry), func() lineParser { return &parsers.Peer{} })
}

func tables(at parent) Child {
	return row(Child{Field: "Tables", Kind: "table", Key: "Name", Words: "table", Path: at.path + "/tables"},
		only(configuration.ParseTables), sure(configuration.SerializeTable), func() lineParser { return &parsers.Table{} })
}

func mailerEntries() Child {
	return row(Child{Field: "MailerEntries", Kind: "mailer", Key: "Name", Words: "mailer", Path: "mailer_entries?mailers_section={parent}"},
		only(configuration.ParseMailerEntries), sure(configuration.SerializeMailerEntry), func() lineParser { return &parsers.Mailer{} })
}

func users() Child {
	return row(Child{Field: "Users", Kind: "user", Key: "Username", Words: "user", Path: "users?userlist={parent}"},
		only(configuration.ParseUsers), sure(configuration.SerializeUser), func() lineParser { return &parsers.User{} })
}

func groups() Child {
	return row(Child{Field: "Groups", Kind: "group", Key: "Name", Words: "group", Path: "groups?userlist={parent}"},
		only(configuration.ParseGroups), sure(configuration.SerializeGroup), func() lineParser { return &parsers.Group{} })
}

// inline makes the descriptor of children that are read and written with the
// section's own fields.
func inline(field, kind, words string) Child { return Child{Field: field, Kind: kind, Words: words} }
