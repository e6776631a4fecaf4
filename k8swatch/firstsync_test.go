package k8swatch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// firstSyncPeak is the most memory that the first sync may take, in bytes.
const firstSyncPeak = 300 << 20

// The process that BenchmarkFirstSync measures is this test binary again, told
// by these variables what to do.
const (
	firstSyncKubeconfig = "K8SWATCH_FIRST_SYNC_KUBECONFIG"
	firstSyncResult     = "K8SWATCH_FIRST_SYNC_RESULT"
	firstSyncPlain      = "K8SWATCH_FIRST_SYNC_PLAIN_LISTS"
	firstSyncUntyped    = "K8SWATCH_FIRST_SYNC_CUSTOM_RESOURCES"
)

type firstSyncFigures struct {
	Objects    int
	Peak, Heap int64
}

// BenchmarkFirstSync is the peak of the resident memory of a process that syncs
// 50,000 objects from an API server over HTTP, what it holds after that, and what it
// took of the processor:
//
//	go test -run '^$' -bench FirstSync$ -benchtime 1x ./k8swatch
func BenchmarkFirstSync(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(serveObjects))
	defer server.Close()
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`, server.URL)
	require.NoError(b, os.WriteFile(kubeconfig, []byte(text), 0o600))
	for _, bm := range []struct {
		name string
		env  []string
	}{
		{"ingresses/stream", nil},
		{"ingresses/pages", []string{firstSyncPlain + "=1"}},
		{"custom resources/stream", []string{firstSyncUntyped + "=1"}},
		{"custom resources/pages", []string{firstSyncPlain + "=1", firstSyncUntyped + "=1"}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				result := filepath.Join(b.TempDir(), "result")
				cmd := exec.Command(os.Args[0], "-test.run", "^$", "-test.bench", "^BenchmarkFirstSyncProcess$", "-test.benchtime", "1x", fmt.Sprintf("-test.short=%t", testing.Short()))
				cmd.Env = append(append(os.Environ(), firstSyncKubeconfig+"="+kubeconfig, firstSyncResult+"="+result), bm.env...)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				text, err := os.ReadFile(result)
				if err != nil {
					b.Fatal(err)
				}
				var got firstSyncFigures
				if err := json.Unmarshal(text, &got); err != nil {
					b.Fatal(err)
				}
				if got.Objects != size() || got.Peak > firstSyncPeak {
					b.Errorf("%d objects with %d MB at most, want %d with %d MB", got.Objects, got.Peak>>20, size(), firstSyncPeak>>20)
				}
				b.ReportMetric(float64(got.Peak)/1e6, "peak-MB")
				b.ReportMetric(float64(got.Heap)/1e6, "heap-MB")
				b.ReportMetric(float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Milliseconds()), "cpu-ms")
			}
		})
	}
}

// BenchmarkFirstSyncProcess is the process that BenchmarkFirstSync starts.
func BenchmarkFirstSyncProcess(b *testing.B) {
	kubeconfig := os.Getenv(firstSyncKubeconfig)
	if kubeconfig == "" {
		b.Skip("started by BenchmarkFirstSync")
	}
	b.ReportAllocs()
	cluster, err := NewCluster(&ClusterOptions{Kubeconfig: kubeconfig})
	require.NoError(b, err)
	defer cluster.Close()
	resource := ingressResource
	if os.Getenv(firstSyncUntyped) != "" {
		resource = routeResource
	}
	w, err := New(cluster, resource, &Options{NoWatchList: os.Getenv(firstSyncPlain) != ""})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	n, err := w.WaitForSync(ctx)
	require.NoError(b, err)
	got := firstSyncFigures{Objects: n, Peak: peakRSS(b)}
	debug.FreeOSMemory()
	got.Heap = heap()
	text, err := json.Marshal(got)
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(os.Getenv(firstSyncResult), text, 0o600))
	cancel()
	require.NoError(b, <-done)
	for b.Loop() { // the work is done; a benchmark must have a loop
	}
}

func peakRSS(b *testing.B) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("the peak is read from /proc")
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	require.NotNil(b, m, "no VmHWM in /proc/self/status")
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(b, err)
	return kb << 10
}

// serveObjects answers as the API server does: streaming lists, pages, and
// watches on which nothing happens; protobuf for ingresses, JSON for routes.
func serveObjects(w http.ResponseWriter, r *http.Request) {
	mediaType, object := runtime.ContentTypeProtobuf, func(i int) runtime.Object { return bigIngress(i) }
	if strings.HasSuffix(r.URL.Path, "/routes") {
		mediaType, object = runtime.ContentTypeJSON, func(i int) runtime.Object { return bigRoute(i) }
	}
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		http.Error(w, "no serializer", http.StatusInternalServerError)
		return
	}
	q := r.URL.Query()
	if q.Get("watch") != "" {
		serveWatch(w, r, info, object)
		return
	}
	first, _ := strconv.Atoi(q.Get("continue"))
	last := size()
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && q.Get("resourceVersion") == "" {
		last = min(first+limit, size())
	}
	meta := metav1.ListMeta{ResourceVersion: "2000000"}
	if last < size() {
		meta.Continue = strconv.Itoa(last)
	}
	var list runtime.Object
	if mediaType == runtime.ContentTypeProtobuf {
		l := &networkingv1.IngressList{ListMeta: meta, TypeMeta: metav1.TypeMeta{Kind: "IngressList", APIVersion: "networking.k8s.io/v1"}}
		for i := first; i < last; i++ {
			l.Items = append(l.Items, *bigIngress(i))
		}
		list = l
	} else {
		l := &unstructured.UnstructuredList{Object: map[string]any{"kind": "RouteList", "apiVersion": "example.com/v1"}}
		l.SetResourceVersion(meta.ResourceVersion)
		l.SetContinue(meta.Continue)
		for i := first; i < last; i++ {
			l.Items = append(l.Items, *bigRoute(i))
		}
		list = l
	}
	w.Header().Set("Content-Type", mediaType)
	_ = info.Serializer.Encode(list, w)
}

func serveWatch(w http.ResponseWriter, r *http.Request, info runtime.SerializerInfo, object func(int) runtime.Object) {
	w.Header().Set("Content-Type", info.MediaType+";stream=watch")
	frames := info.StreamSerializer.NewFrameWriter(w)
	send := func(kind string, obj runtime.Object) bool {
		var text, frame strings.Builder
		if info.Serializer.Encode(obj, &text) != nil {
			return false
		}
		event := &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: []byte(text.String())}}
		if info.StreamSerializer.Encode(event, &frame) != nil {
			return false
		}
		_, err := frames.Write([]byte(frame.String()))
		return err == nil
	}
	if r.URL.Query().Get("sendInitialEvents") != "" {
		for i := range size() {
			if !send("ADDED", object(i)) {
				return
			}
		}
		mark := object(0).(Object)
		mark.SetResourceVersion("2000000")
		mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		if !send("BOOKMARK", mark) {
			return
		}
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}
