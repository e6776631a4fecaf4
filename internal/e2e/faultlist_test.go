package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// survived lists the faults that haptic promises to survive, and the tests that
// prove it: package and name. Most are injected by TestSoak as well, at random
// and together.
var survived = []struct{ fault, tests string }{
	{"API server restarts", "internal/e2e.TestAPIServerOutage internal/e2e.TestWatchAPIServerRestarts internal/e2e.TestChangesDuringTheOutageAreFound"},
	{"watch drops", "internal/e2e.TestWatchModel k8swatch.TestLostConnection k8swatch.TestTornBody k8swatch.TestRecreatedWhileAway"},
	{"watch is half open", "internal/e2e.TestWatchHalfOpen k8swatch.TestHalfOpen"},
	{"a standby with broken watches wins the Lease", "internal/e2e.TestStaleStandby reconcile.TestATermBeginsWithWhatIsKnown reconcile/settings.TestLiveLeads k8swatch.TestRefresh"},
	{"network is partitioned", "internal/e2e.TestWatchModel k8swatch.TestLostConnection k8swatch.TestRecreatedWhileAway"},
	{"compaction, 410 Gone", "internal/e2e.TestWatchSuite internal/e2e.TestWatchModel"},
	{"Dataplane API answers 5xx, is late or is slow", "dataplane.TestClientFaults dataplane.TestClientSharedFaults dataplane.TestClientContext internal/e2e.TestSoak"},
	{"client is killed before or after each call", "dataplane.TestClientKilledAtEachRequest dataplane.TestLocalKilledAtEachStep internal/e2e.TestControllerKilled"},
	{"202, then the reload fails", "dataplane.TestClientFailedReload dataplane.TestClientSharedFailedReload internal/e2e.TestSoak"},
	{"second writer", "dataplane.TestClientSecondWriter dataplane.TestClientSecondWriterAnywhere dataplane.TestClientSharedSecondWriter"},
	{"port is taken", "internal/e2e.TestPortTaken internal/e2e.TestPortTakenAtReload dataplane.TestLocalPortTaken dataplane.TestLocalReloadOntoATakenPort dataplane.TestLocalReloadOntoItsOwnPort"},
	{"bad certificate at a reload", "internal/e2e.TestBadInput examples/controller/ingress.TestCertificates dataplane.TestContractRefused"},
	{"invalid configuration is rendered", "internal/e2e.TestQuarantine reconcile.TestWhatFailsLeavesTheLastGoodOne dataplane.TestClientRefusedConfiguration"},
	{"haproxy is missing", "internal/e2e.TestHAProxyMissing dataplane.TestLocalMissingHAProxy validate.TestContextAndBinary"},
	{"haproxy hangs", "dataplane.TestLocalHangingHAProxy validate.TestHangingBinary reconcile/cases.TestValidatorThatHangs"},
	{"haproxy is killed", "internal/e2e.TestHAProxyKilled dataplane.TestLocalKilledMasterComesBack dataplane.TestLocalKilledWorkerComesBack"},
	{"disk is full", "internal/e2e.TestDiskFull dataplane.TestLocalFullDisk"},
	{"disk is read-only", "internal/e2e.TestDiskReadOnly dataplane.TestLocalFullDisk"},
	{"clock jumps", "reconcile.TestInstanceSchedule k8swatch.TestElectionFrozen"},
	{"one instance hangs among 100", "reconcile.TestOneHungAmongHundred reconcile.TestInstancesAreIndependent"},
	{"endpoints flap at 10 Hz", "internal/e2e.TestEndpointsFlap internal/e2e.TestHundredEndpointChanges"},
	{"credentials are rotated in mid-deployment", "internal/e2e.TestCredentialsRotatedInMidDeployment internal/e2e.TestDiscovery"},
	{"credentials are missing, partial, wrong or lost", "internal/e2e.TestReadyMeansReady examples/settings.TestReady reconcile/discover.TestFollowerCredentials"},
	{"a tenant makes a pod with the label of HAProxy", "internal/e2e.TestDiscoveryTrustsOneNamespace reconcile/discover.TestFollowerPods examples/settings.TestRemote"},
	{"leadership is lost in mid-deployment", "internal/e2e.TestFrozenLeader reconcile.TestLeadershipLostWithinADeployment dataplane.TestClientFence dataplane.TestLocalFence"},
	{"templates loop, print without end, or panic", "reconcile/render.TestTemplatesThatMisbehave templating.TestPrintsWithoutEnd templating.TestContextStopsALoop templating.TestErrors"},
	{"newline, NUL, quote, space, # in host, path, annotation", "internal/e2e.TestBadInput examples/controller/ingress.TestHostileResources examples/controller/ingress.FuzzHostile templating.TestCVEs"},
	{"names of files: .., NUL, and two that collide", "dataplane.TestFileNames dataplane.FuzzFileName dataplane.TestNewConfigRefuses reconcile/render.TestRegister"},
	{"secrets in logs, pages, events, metrics", "reconcile/observe.TestSecretsDoNotShow internal/e2e.TestDiscovery dataplane.TestClientPrintsNoSecrets reconcile/discover.TestCredentialsNeverPrint reconcile/discover.TestFollowerCredentials k8swatch.TestSecretsDoNotPrint"},
	{"debug server without a token", "reconcile/observe.TestRefusesToBeOpen reconcile/observe.TestWhoMayAsk internal/e2e.TestDebugServerIsNotOpen examples/controller.TestDebugPagesAreNotForEverybody"},
	{"4,000 Secrets of 1 MB", "k8swatch.TestCachedManyBigSecrets"},
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(\w+ \*testing\.[TF]\)`)

// Each fault has tests, and they exist.
func TestFaultsHaveTests(t *testing.T) {
	known := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			known[filepath.ToSlash(dir)+"."+m[1]] = true
		}
		return err
	})
	must(t, err)
	for _, s := range survived {
		for _, test := range strings.Fields(s.tests) {
			if !known[test] {
				t.Errorf("%s: there is no %s", s.fault, test)
			}
		}
	}
}
