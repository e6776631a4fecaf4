package dataplanetest_test

// scenarios are all that the API is told.
func scenarios() []scenario {
	var all []scenario
	for _, some := range [][]scenario{rawScenarios(), actionScenarios(), reloadScenarios(), storageScenarios(), certificateScenarios(), serverScenarios(), patternScenarios(), sslScenarios()} {
		all = append(all, some...)
	}
	return all
}

const (
	otherText = "global\n  maxconn 5\ndefaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nfrontend f\n  bind unix@f.sock\nbackend z\n  server s 127.0.0.1:1\nbackend a\n  server s 127.0.0.1:1\n"
	badText   = "global\n  nonsense\nfrontend f\n  bind unix@f.sock\n"
)

func rawScenarios() []scenario {
	return []scenario{
		{name: "raw, pushed in every way", steps: []step{
			{do: "GET configuration/raw", status: 200, want: "server s1"},
			{do: "GET configuration/version", status: 200, want: "1"},
			{do: "POST configuration/raw?version={v}&only_validate=true", body: otherText, status: 202, want: "server s1"},
			{do: "POST configuration/raw?version=9&only_validate=true", body: otherText, status: 202, want: "server s1"},
			{do: "POST configuration/raw?version={v}&skip_reload=true", body: otherText, status: 201, want: "# _version=2\n\nglobal\n  maxconn 5\n\ndefaults unnamed_defaults_1\n"},
			{do: "POST configuration/raw?version={v}", body: otherText, status: 202, reload: true, save: "first", want: "# _version=3\n"},
			{do: "POST configuration/raw?version={v}", body: otherText, status: 202, reload: true, save: "same", want: "# _version=4\n"},
			{do: "POST configuration/raw?version={v}&force_reload=true", body: otherText, status: 201, want: "# _version=5\n"},
			{do: "GET configuration/version", status: 200, want: "5"},
			{do: "GET configuration/raw", status: 200, want: "backend a\n  server s 127.0.0.1:1\n\nbackend z\n"},
		}},
		{name: "raw, refused", steps: []step{
			{do: "POST configuration/raw", body: otherText, status: 400, want: "version or transaction not specified, specify only one"},
			{do: "POST configuration/raw?version=7", body: otherText, status: 409, want: "version in configuration file is 1, given version is 7"},
			{do: "POST configuration/raw?version={v}", status: 422, want: "data in body is required"},
			{do: "PUT configuration/raw", status: 405},
			{do: "GET configuration/raw", status: 200, want: "server s1"},
		}},
		{name: "raw, not a configuration", judge: true, steps: []step{
			{do: "POST configuration/raw?version={v}&only_validate=true", body: badText, status: 400, want: "unknown keyword 'nonsense'"},
			{do: "POST configuration/raw?version={v}", body: badText, status: 400, want: "validation error"},
			{do: "GET configuration/version", status: 200, want: "1"},
		}},
		{name: "raw, two defaults", steps: []step{
			{do: "POST configuration/raw?version={v}&skip_reload=true", status: 201, want: "backend a\n  server",
				body: otherText + "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nbackend t\n  server s 127.0.0.1:1\n"},
			{do: "GET configuration/raw", status: 200, want: "defaults unnamed_defaults_2\n  mode tcp\n"},
		}},
	}
}

func reloadScenarios() []scenario {
	return []scenario{
		{name: "reloads", steps: []step{
			{do: "GET reloads/2026-01-01-7", status: 404, want: "Reload with ID 2026-01-01-7 does not exist"},
			{do: "POST configuration/raw?version={v}", body: startText, status: 202, reload: true, save: "first"},
			{do: "GET reloads/{first}", status: 200, want: `"status":"in_progress"`},
			{do: "POST configuration/raw?version={v}&force_reload=true", body: startText, status: 201},
			{do: "GET reloads/{first}", status: 200, want: `"status":"succeeded"`, differs: "the words of the reload"},
			{do: "POST configuration/raw?version={v}", body: startText, status: 202, reload: true, save: "second"},
			{do: "GET reloads/{second}", status: 200, want: `"status":"in_progress"`},
			{do: "GET reloads/{first}", status: 200, want: `"status":"succeeded"`, differs: "the words of the reload"},
		}},
	}
}

func actionScenarios() []scenario {
	return []scenario{
		{name: "raw, with actions", steps: []step{
			{do: "POST configuration/raw?version={v}&skip_reload=true", header: "X-Runtime-Actions: SetServerAddr b s1 127.0.0.2 1003;SetServerWeight b s1 20;SetServerState b s2 maint;Dance b s1", body: startText, status: 201},
			{do: "GET configuration/version", status: 200, want: "2"},
		}},
		{name: "raw, with an action for no server", from: 27, steps: []step{ // before, the API does not see the error
			{do: "POST configuration/raw?version={v}&skip_reload=true", header: "X-Runtime-Actions: SetServerState b nobody maint;SetServerState b s1 maint", body: startText, status: 500, want: "No such server"},
			{do: "GET configuration/version", status: 200, want: "2"},
			{do: "GET runtime/backends/b/servers", status: 200, want: `"admin_state":"ready"`},
		}},
	}
}
