// Package reconciletest helps to test a controller made with package reconcile. A [Target]
// is a fake HAProxy. [Cases] runs the cases that stand with templates as tests.
//
// Resources come from a source of k8swatchtest. In a bubble of testing/synctest a minute
// takes no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		source, target := k8swatchtest.NewSource(service), reconciletest.NewTarget("a")
//		loop := newController(source, target) // your own, as your program makes it
//		go loop.Run(ctx)
//		source.Apply(moved)
//		synctest.Wait() // all that can happen at this time has happened
//		target.Config(t).Main() // the text that HAProxy would have; without one the test fails and says why
//	})
package reconciletest
