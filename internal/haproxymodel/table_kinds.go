package haproxymodel

import (
	parser "github.com/haproxytech/client-native/v6/config-parser"
	"github.com/haproxytech/client-native/v6/configuration"
	"github.com/haproxytech/client-native/v6/models"
)

func buildKinds() []*Kind {
	return []*Kind{
		globalKind(), defaultsKind(), frontendKind(), backendKind(),
		resolversKind(), peersKind(), mailersKind(), userlistKind(),
		cacheKind(), ringKind(), logForwardKind(), logProfileKind(),
		httpErrorsKind(), fcgiAppKind(), crtStoreKind(), programKind(),
		tracesKind(), acmeKind(),
	}
}

func globalKind() *Kind {
	at := parent{configuration.GlobalParentName, "global"}
	return finish(&Kind{
		Name: "global", Path: "global", Single: true,
		parse: func(p parser.Parser, _ string) (any, error) { return configuration.ParseGlobalSection(p) },
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeGlobalSection(p, model.(*models.Global), writeOptions())
		},
		Children: []Child{
			inline("CPUMaps", "cpu-map", "cpu-map"),
			inline("CPUSets", "cpu-set", "cpu-set"),
			inline("H1CaseAdjusts", "h1-case-adjust", "h1-case-adjust"),
			inline("HTTPErrCodes", "http-err-codes", "http-err-codes"),
			inline("HTTPFailCodes", "http-fail-codes", "http-fail-codes"),
			inline("RuntimeAPIs", "stats socket", "stats socket"),
			inline("SetVars", "set-var", "set-var"),
			inline("SetVarFmts", "set-var-fmt", "set-var-fmt"),
			inline("ThreadGroupLines", "thread-group", "thread-group"),
			logTargets(at),
		},
	}, models.Global{})
}

func defaultsKind() *Kind {
	at := parent{configuration.DefaultsParentName, "defaults/{parent}"}
	return finish(&Kind{
		Name: "defaults", Path: "defaults",
		parse: func(p parser.Parser, name string) (any, error) {
			m := &models.Defaults{}
			return m, configuration.ParseSection(&m.DefaultsBase, parser.Defaults, name, p)
		},
		write: func(p parser.Parser, name string, model any) error {
			return configuration.CreateEditSection(&model.(*models.Defaults).DefaultsBase, parser.Defaults, name, p, writeOptions())
		},
		Children: []Child{
			inline("ErrorFiles", "errorfile", "errorfile"),
			inline("ErrorFilesFromHTTPErrors", "errorfiles", "errorfiles"),
			acls(at), quicInitialRules(at),
			tcpRequestRules(at), tcpResponseRules(at),
			httpRequestRules(at), httpResponseRules(at), httpAfterResponseRules(at), httpErrorRules(at),
			tcpChecks(at), httpChecks(at), logTargets(at),
		},
	}, models.Defaults{})
}

func frontendKind() *Kind {
	at := parent{configuration.FrontendParentName, "frontends/{parent}"}
	return finish(&Kind{
		Name: "frontend", Path: "frontends",
		parse: func(p parser.Parser, name string) (any, error) {
			m := &models.Frontend{}
			return m, configuration.ParseSection(&m.FrontendBase, parser.Frontends, name, p)
		},
		write: func(p parser.Parser, name string, model any) error {
			return configuration.CreateEditSection(&model.(*models.Frontend).FrontendBase, parser.Frontends, name, p, writeOptions())
		},
		Children: []Child{
			inline("ErrorFiles", "errorfile", "errorfile"),
			inline("ErrorFilesFromHTTPErrors", "errorfiles", "errorfiles"),
			binds(at), sslFrontUses(at), acls(at), captures(at), filterList(at), quicInitialRules(at),
			tcpRequestRules(at),
			httpRequestRules(at), httpResponseRules(at), httpAfterResponseRules(at), httpErrorRules(at),
			backendSwitchingRules(at), logTargets(at),
		},
	}, models.Frontend{})
}

func backendKind() *Kind {
	at := parent{configuration.BackendParentName, "backends/{parent}"}
	return finish(&Kind{
		Name: "backend", Path: "backends",
		parse: func(p parser.Parser, name string) (any, error) {
			m := &models.Backend{}
			return m, configuration.ParseSection(&m.BackendBase, parser.Backends, name, p)
		},
		write: func(p parser.Parser, name string, model any) error {
			return configuration.CreateEditSection(&model.(*models.Backend).BackendBase, parser.Backends, name, p, writeOptions())
		},
		Children: []Child{
			inline("ErrorFiles", "errorfile", "errorfile"),
			inline("ErrorFilesFromHTTPErrors", "errorfiles", "errorfiles"),
			inline("ForcePersistList", "force-persist rule", "force-persist"),
			inline("IgnorePersistList", "ignore-persist rule", "ignore-persist"),
			acls(at), filterList(at),
			tcpRequestRules(at), tcpResponseRules(at),
			httpRequestRules(at), httpResponseRules(at), httpAfterResponseRules(at), httpErrorRules(at),
			tcpChecks(at), httpChecks(at), stickRules(at),
			servers(at), serverTemplates(at), serverSwitchingRules(at), logTargets(at),
		},
	}, models.Backend{})
}

func resolversKind() *Kind {
	return finish(&Kind{
		Name: "resolvers", Path: "resolvers",
		parse: func(p parser.Parser, name string) (any, error) {
			m := &models.Resolver{ResolverBase: models.ResolverBase{Name: name}}
			return m, configuration.ParseResolverSection(p, m)
		},
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeResolverSection(p, model.(*models.Resolver), writeOptions())
		},
		Children: []Child{nameservers()},
	}, models.Resolver{})
}

func peersKind() *Kind {
	at := parent{configuration.PeersParentName, "peers/{parent}"}
	return finish(&Kind{
		Name: "peers", Path: "peer_section", NoUpdate: true,
		parse: func(p parser.Parser, name string) (any, error) {
			m := &models.PeerSection{}
			return m, configuration.ParseSection(&m.PeerSectionBase, parser.Peers, name, p)
		},
		write: func(p parser.Parser, name string, model any) error {
			return configuration.CreateEditSection(&model.(*models.PeerSection).PeerSectionBase, parser.Peers, name, p, writeOptions())
		},
		Children: []Child{binds(at), servers(at), peerEntries(), tables(at), logTargets(at)},
	}, models.PeerSection{})
}

func mailersKind() *Kind {
	return finish(&Kind{
		Name: "mailers", Path: "mailers_section",
		parse: func(p parser.Parser, name string) (any, error) {
			m := &models.MailersSection{MailersSectionBase: models.MailersSectionBase{Name: name}}
			return m, configuration.ParseMailersSection(p, m)
		},
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeMailersSection(p, model.(*models.MailersSection), writeOptions())
		},
		Children: []Child{mailerEntries()},
	}, models.MailersSection{})
}

func userlistKind() *Kind {
	return finish(&Kind{
		Name: "userlist", Path: "userlists", NoUpdate: true,
		parse:    func(parser.Parser, string) (any, error) { return &models.Userlist{}, nil },
		write:    func(parser.Parser, string, any) error { return nil },
		Children: []Child{groups(), users()},
	}, models.Userlist{})
}

func cacheKind() *Kind {
	return finish(&Kind{
		Name: "cache", Path: "caches",
		parse: func(p parser.Parser, name string) (any, error) {
			m := &models.Cache{Name: &name}
			return m, configuration.ParseCacheSection(p, m)
		},
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeCacheSection(p, model.(*models.Cache))
		},
	}, models.Cache{})
}

func ringKind() *Kind {
	return finish(&Kind{
		Name: "ring", Path: "rings",
		parse: func(p parser.Parser, name string) (any, error) {
			m := &models.Ring{RingBase: models.RingBase{Name: name}}
			return m, configuration.ParseRingSection(p, m)
		},
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeRingSection(p, model.(*models.Ring), writeOptions())
		},
		Children: []Child{servers(parent{configuration.RingParentName, "rings/{parent}"})},
	}, models.Ring{})
}

func logForwardKind() *Kind {
	at := parent{configuration.LogForwardParentName, "log_forwards/{parent}"}
	return finish(&Kind{
		Name: "log-forward", Path: "log_forwards",
		parse: func(p parser.Parser, name string) (any, error) {
			m := &models.LogForward{LogForwardBase: models.LogForwardBase{Name: name}}
			return m, configuration.ParseLogForward(p, m)
		},
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeLogForwardSection(p, model.(*models.LogForward), writeOptions())
		},
		Children: []Child{binds(at), dgramBinds(at), logTargets(at)},
	}, models.LogForward{})
}

func logProfileKind() *Kind {
	return finish(&Kind{
		Name: "log-profile", Path: "log_profiles", gates: []gate{{"log-tag", "LogTag"}},
		parse: func(p parser.Parser, name string) (any, error) { return configuration.ParseLogProfile(p, name) },
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeLogProfile(p, model.(*models.LogProfile))
		},
		Children: []Child{inline("Steps", "log step", "on")},
	}, models.LogProfile{})
}

func httpErrorsKind() *Kind {
	return finish(&Kind{
		Name: "http-errors", Path: "http_errors_sections",
		parse: func(p parser.Parser, name string) (any, error) {
			m, err := configuration.ParseHTTPErrorsSection(p, name)
			if noLines(err) {
				return &models.HTTPErrorsSection{}, nil
			}
			return m, err
		},
		write: func(p parser.Parser, _ string, model any) error {
			m := model.(*models.HTTPErrorsSection)
			if len(m.ErrorFiles) == 0 {
				return nil
			}
			return configuration.SerializeHTTPErrorsSection(p, m)
		},
		Children: []Child{inline("ErrorFiles", "errorfile", "errorfile")},
	}, models.HTTPErrorsSection{})
}

func fcgiAppKind() *Kind {
	return finish(&Kind{
		Name: "fcgi-app", Path: "fcgi_apps",
		parse: func(p parser.Parser, name string) (any, error) { return configuration.ParseFCGIApp(p, name) },
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeFCGIAppSection(p, model.(*models.FCGIApp))
		},
		Children: []Child{
			inline("LogStderrs", "log-stderr", "log-stderr"),
			inline("PassHeaders", "pass-header", "pass-header"),
			inline("SetParams", "set-param", "set-param"),
			acls(parent{configuration.FCGIAppParentName, "fcgi_apps/{parent}"}),
		},
	}, models.FCGIApp{})
}

func crtStoreKind() *Kind {
	return finish(&Kind{
		Name: "crt-store", Path: "crt_stores", gates: []gate{{"crt-base", "CrtBase"}, {"key-base", "KeyBase"}},
		parse: func(p parser.Parser, name string) (any, error) { return configuration.ParseCrtStore(p, name) },
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeCrtStore(p, model.(*models.CrtStore))
		},
		Children: []Child{{
			Field: "Loads", Kind: "load", Key: "Certificate", Words: "load", Path: "crt_loads?crt_store={parent}",
		}},
	}, models.CrtStore{})
}

func programKind() *Kind {
	return finish(&Kind{
		Name: "program", Path: "programs",
		parse: func(p parser.Parser, name string) (any, error) { return configuration.ParseProgram(p, name) },
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeProgramSection(p, model.(*models.Program))
		},
	}, models.Program{})
}

func tracesKind() *Kind {
	return finish(&Kind{
		Name: "traces", Path: "traces", Single: true,
		parse: func(p parser.Parser, _ string) (any, error) { return configuration.ParseTraces(p) },
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeTraces(p, model.(*models.Traces))
		},
		Children: []Child{{
			Field: "Entries", Kind: "trace", Words: "trace", Path: "traces/entries", NoUpdate: true, Append: true,
		}},
	}, models.Traces{})
}

func acmeKind() *Kind {
	return finish(&Kind{
		Name: "acme", Path: "acme",
		parse: func(p parser.Parser, name string) (any, error) { return configuration.ParseAcmeProvider(p, name) },
		write: func(p parser.Parser, _ string, model any) error {
			return configuration.SerializeAcmeProvider(p, model.(*models.AcmeProvider))
		},
	}, models.AcmeProvider{})
}
