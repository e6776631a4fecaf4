// Package reconciletest helps to test a controller that is made with package
// reconcile: a [Target] is a HAProxy that is not there, and [Cases] runs the cases that
// stand with templates as tests.
//
// Resources come from a source of k8swatchtest, and in a bubble of testing/synctest a
// minute takes no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		source, target := k8swatchtest.NewSource(service), reconciletest.NewTarget("a")
//		loop := newController(source, target) // your own, as your program makes it
//		go loop.Run(ctx)
//		source.Apply(moved)
//		synctest.Wait() // all that can happen at this time has happened
//		target.Current().Main() // is what HAProxy would have
//	})
package reconciletest
