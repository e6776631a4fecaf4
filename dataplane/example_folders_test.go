package dataplane_test

import (
	"fmt"
	"os"

	"github.com/hapticsdk/haptic/dataplane"
)

// A program that compares two folders, in the manner of terraform, needs neither HAProxy nor
// a network. Each folder has haproxy.cfg, and maps/, ssl/ and general/ beside it.
func ExampleDiff_folders() {
	var configs []*dataplane.Config
	for _, folder := range []string{"testdata/diff/before", "testdata/diff/after"} {
		config, err := dataplane.ReadConfig(os.DirFS(folder), "haproxy.cfg")
		if err != nil {
			fmt.Println(folder, err)
			return
		}
		configs = append(configs, config)
	}
	plan, err := dataplane.Diff(configs[0], configs[1])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan) // or plan.Empty for an exit code, json.Marshal for programs
	// Output:
	// ~ server s1 in backend shop (runtime)
	//     address: 192.0.2.1:80 -> 192.0.2.7:80
	// + server s3 in backend shop (runtime)
	//     address: (none) -> 192.0.2.3:80
	//     weight: (none) -> 50
	//     check: (none) -> yes
	//     inter: (none) -> 2s
	// ~ http-request 0 in frontend web (reload: http-request can change only at a reload)
	//     http-request deny if { path_beg /admin } (none) -> !{ src 10.0.0.0/8 }
	// + map entry www.example.com in map hosts.map (runtime)
	//     value: (none) -> shop
	// Plan: 2 to create, 2 to update, 0 to delete; one reload.
}
