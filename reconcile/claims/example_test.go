package claims_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/claims"
)

// route is an object of a controller.
type route struct {
	metav1.ObjectMeta
	hosts []string
}

// newRoute makes a route; the larger created, the younger.
func newRoute(namespace, name string, created int64, hosts ...string) *route {
	return &route{metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(created, 0)}, hosts}
}

func claimsOf(_ string, r *route) (claims.Claimant, iter.Seq[string]) {
	return claims.By("Route", r), slices.Values(r.hosts)
}

// ofShopAndEvil has a host and a wildcard that two namespaces claim.
func ofShopAndEvil(opts claims.HostOptions) *claims.Hosts {
	g := derive.New()
	routes := derive.NewInput[string, *route](g, "routes")
	hosts := claims.NewHosts(g, routes.Collection, claimsOf, opts)
	routes.Set("shop", newRoute("shop", "web", 1, "shop.test", "*.shop.test"))
	routes.Set("evil", newRoute("evil", "web", 2, "shop.test", "a.shop.test", "evil.test"))
	if err := g.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	return hosts
}

func Example() {
	hosts := ofShopAndEvil(claims.HostOptions{})
	for _, host := range slices.Sorted(maps.Keys(maps.Collect(hosts.Owners.All()))) {
		owner, _ := hosts.Owners.Get(nil, host)
		fmt.Println(host, owner)
	}
	// Output:
	// *.shop.test shop
	// evil.test evil
	// shop.test shop
}

func ExampleNewHosts() {
	earlier := map[string]string{"shop.test": "evil"} // for example of claims.Entries
	hosts := ofShopAndEvil(claims.HostOptions{
		Shared:  []string{"evil.test"},
		Earlier: func(host string) string { return earlier[host] },
	})
	fmt.Println(hosts.Owners.Get(nil, "shop.test"))
	fmt.Println(hosts.Owners.Get(nil, "evil.test"))
	// Output:
	// evil true
	// * true
}

func ExampleHosts_NotOwned() {
	hosts := ofShopAndEvil(claims.HostOptions{})
	fmt.Println(hosts.NotOwned(nil, "shop.test", "evil"))
	fmt.Println(hosts.NotOwned(nil, "a.shop.test", "evil"))
	fmt.Printf("%q\n", hosts.NotOwned(nil, "a.shop.test", "shop"))
	// Output:
	// shop.test belongs to namespace shop, which claimed it first
	// a.shop.test belongs to namespace shop with *.shop.test, which claimed it first
	// ""
}

func ExampleHosts_IsShared() {
	hosts := ofShopAndEvil(claims.HostOptions{Shared: []string{"*.demo.test"}})
	fmt.Println(hosts.IsShared("a.demo.test"), hosts.IsShared("shop.test"))
	// Output: true false
}

func ExampleHosts_List() {
	g := derive.New()
	routes := derive.NewInput[string, *route](g, "routes")
	hosts := claims.NewHosts(g, routes.Collection, claimsOf, claims.HostOptions{})
	list := hosts.List(func(_ *derive.Reads, host string) bool { return host != "empty.shop.test" })
	routes.Set("shop", newRoute("shop", "web", 1, "*.shop.test", "a.shop.test", "empty.shop.test"))
	if err := g.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	for h := range list.Hosts.Get(nil).All() {
		fmt.Println(h.Name, h.Namespace)
	}
	for _, h := range list.Wildcards(nil) {
		fmt.Println("names below", h.Name, h.Namespace)
	}
	// Output:
	// *.shop.test shop
	// a.shop.test shop
	// names below .shop.test shop
}

func ExampleListing_Wildcards() {
	list := ofWildcards("*.test", "*.shop.test")
	for _, h := range list.Wildcards(nil) {
		fmt.Println(h.Name)
	}
	// Output:
	// .shop.test
	// .test
}

func ExampleListing_Below() {
	g := derive.New()
	routes := derive.NewInput[string, *route](g, "routes")
	list := claims.NewHosts(g, routes.Collection, claimsOf, claims.HostOptions{}).List(func(*derive.Reads, string) bool { return true })
	routes.Set("evil", newRoute("evil", "web", 1, "a.shop.test"))
	routes.Set("shop", newRoute("shop", "web", 2, "*.shop.test", "b.shop.test"))
	if err := g.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	for _, h := range list.Below(nil, "*.shop.test", "shop") {
		fmt.Println(h.Name, h.Namespace)
	}
	// Output: a.shop.test evil
}

func ofWildcards(names ...string) *claims.Listing {
	g := derive.New()
	routes := derive.NewInput[string, *route](g, "routes")
	list := claims.NewHosts(g, routes.Collection, claimsOf, claims.HostOptions{}).List(func(*derive.Reads, string) bool { return true })
	routes.Set("shop", newRoute("shop", "web", 1, names...))
	if err := g.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	return list
}

func ExampleBy() {
	fmt.Println(claims.By("Route", newRoute("shop", "web", 1)))
	// Output: Route shop/web
}

func ExampleClaimant_Compare() {
	older, younger := claims.By("Route", newRoute("shop", "web", 1)), claims.By("Route", newRoute("aaa", "web", 2))
	fmt.Println(older.Compare(younger), younger.Compare(older))
	// Output: -1 1
}

func ExampleClaimant_String() {
	fmt.Println(claims.Claimant{Kind: "Route", Namespace: "shop", Name: "web"}.String())
	// Output: Route shop/web
}

// claim is a route that asks for a key, with its backend.
type claim struct {
	by      claims.Claimant
	backend string
}

func (c claim) asks() claims.Holder[string] {
	return claims.Holder[string]{By: c.by, Serves: c.backend}
}
func (c claim) namespace() string { return c.by.Namespace }

func newClaim(namespace, name string, created int64, backend string) claim {
	return claim{claims.Claimant{Kind: "Route", Namespace: namespace, Name: name, Created: time.Unix(created, 0)}, backend}
}

func ExampleFirst() {
	old, young := newClaim("shop", "old", 1, "a"), newClaim("shop", "young", 2, "b")
	all := []claim{old, young} // in the order of their age
	first, _ := claims.First(claims.Holder[string]{}, all, claim.asks)
	fmt.Println("a free key:", first.by)

	had := young.asks()
	first, _ = claims.First(had, all, claim.asks)
	fmt.Println("it keeps a key:", first.by)

	all[1].backend = "c" // no claim is served as before
	first, _ = claims.First(had, all, claim.asks)
	fmt.Println("it keeps a key with another backend:", first.by)
	// Output:
	// a free key: Route shop/old
	// it keeps a key: Route shop/young
	// it keeps a key with another backend: Route shop/young
}

func ExampleOwner() {
	all := []claim{newClaim("evil", "old", 1, "a"), newClaim("shop", "young", 2, "b")}
	fmt.Println(claims.Owner("", all, claim.namespace))
	fmt.Println(claims.Owner("shop", all, claim.namespace))
	fmt.Println(claims.Owner("gone", all, claim.namespace))
	// Output:
	// evil
	// shop
	// evil
}

func ExampleHolder_Then() {
	had, now := newClaim("shop", "old", 1, "a").asks(), newClaim("shop", "young", 2, "b").asks()
	fmt.Println(had.Then(now, false).By)
	fmt.Println(had.Then(now, true).By, "is quarantined, and stays the holder")
	// Output:
	// Route shop/young
	// Route shop/old is quarantined, and stays the holder
}

func ExampleEntries() {
	deployed, err := dataplane.NewConfig("global\n", dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte("# host namespace\nshop.test shop\n")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for host, namespace := range claims.Entries(deployed, "hosts.map") {
		fmt.Println(host, "belongs to", namespace)
	}
	// Output: shop.test belongs to shop
}

func ExampleHostProblem() {
	fmt.Println(claims.HostProblem("Shop.test:8080"))
	// Output: "Shop.test:8080" is not a host name, it has a port: write "shop.test"
}

func ExampleHostWarning() {
	fmt.Println(claims.HostWarning("192.0.2.1"))
	// Output: it is an IP address, which the API server refuses: leave the host out to serve all addresses
}

func ExampleIsHost() {
	fmt.Println(claims.IsHost("*.shop.test"), claims.IsHost("shop.*"), claims.IsHost("*"))
	// Output: true false false
}

func ExampleCheckShared() {
	fmt.Println(claims.CheckShared("*"), claims.CheckShared("*.demo.test"))
	fmt.Println(claims.CheckShared("shop_1.test"))
	// Output:
	// <nil> <nil>
	// "shop_1.test" is not a host name, it holds '_'; letters a-z, digits, "-" and "." are allowed
}
