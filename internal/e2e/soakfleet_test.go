package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// podEnv is set in a process that is a HAProxy pod: to its address, that of the
// other end of its cable, and the folder of its files, separated by blanks.
const podEnv = "HAPTIC_E2E_POD"

// dataplaneAPIEnv names a real Dataplane API, and podHAProxyEnv the haproxy of
// the pod that it is put into; without the latter it is the one of PATH.
const (
	dataplaneAPIEnv = "DATAPLANEAPI_BIN"
	podHAProxyEnv   = "DATAPLANEAPI_HAPROXY_BIN"
)

const (
	podAPIPort     = "5555"
	podControlPort = "5556" // for the tests
	podPassword    = "secret"
)

// haproxyPod is a HAProxy with a Dataplane API in network and mount namespaces
// of its own, so that all pods can have the same configuration.
type haproxyPod struct {
	*process
	name string
	addr string
	real bool // a real Dataplane API, which no test can make fail a reload
}

// startPod starts pod number i, over the files in a folder that has the same
// name in all pods.
func startPod(t testing.TB, i int, dir, api, haproxy string) *haproxyPod {
	t.Helper()
	gateway, addr := fmt.Sprintf("203.0.113.%d", 4*i+1), fmt.Sprintf("203.0.113.%d", 4*i+2)
	p := &haproxyPod{name: fmt.Sprintf("haproxy-%d", i), addr: addr, real: api != ""}
	in, out, err := os.Pipe()
	must(t, err)
	p.process, err = startIsolated(p.name, in, []string{
		podEnv + "=" + strings.Join([]string{addr, gateway, dir}, " "),
		dataplaneAPIEnv + "=" + api, podHAProxyEnv + "=" + haproxy})
	_ = in.Close()
	must(t, err)
	link := fmt.Sprintf("pod%d", i)
	t.Cleanup(func() {
		_ = out.Close()
		<-p.done
		_ = ip("link", "del", link) // the kernel does so as well, when it finds the time
		if t.Failed() {
			t.Logf("%s printed:\n%s", p.name, p.out.tail())
		}
	})
	for _, args := range [][]string{
		{"link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(p.pid())},
		{"addr", "add", gateway + "/30", "dev", link},
		{"link", "set", link, "up"},
	} {
		must(t, ip(args...))
	}
	if _, err := fmt.Fprintln(out, "the cable is there"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is ready", func() error {
		if err := p.ended(); err != nil {
			return err
		}
		if !strings.Contains(p.out.String(), "pod is ready") {
			return errors.New("it does not say so")
		}
		return nil
	})
	return p
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", args, err, out)
	}
	return nil
}

// control asks the pod itself, past what stands between it and controllers.
func (p *haproxyPod) control(method, port, path, body string) (string, error) {
	req, err := http.NewRequest(method, "http://"+net.JoinHostPort(p.addr, port)+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.SetBasicAuth("admin", podPassword)
	req.Header.Set("Content-Type", "text/plain")
	client := http.Client{Timeout: pageTime, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.200s", method, path, resp.Status, text)
	}
	return string(text), err
}

const rawPath = "/v3/services/haproxy/configuration/raw"

// failReload makes the next reload fail, after the API has said 202.
func (p *haproxyPod) failReload() error {
	_, err := p.control(http.MethodPost, podControlPort, "/failreload", "")
	return err
}

// intrude is a second writer: it adds a backend to what is there.
func (p *haproxyPod) intrude(name string) error {
	version, err := p.control(http.MethodGet, podAPIPort, "/v3/services/haproxy/configuration/version", "")
	if err != nil {
		return err
	}
	text, err := p.control(http.MethodGet, podAPIPort, rawPath, "")
	if err != nil {
		return err
	}
	_, err = p.control(http.MethodPost, podAPIPort, rawPath+"?version="+strings.TrimSpace(version),
		text+"\nbackend "+name+"\n  server one 192.0.2.1:80\n")
	return err
}

// runPod is the main function of a pod.
func runPod(env string) error {
	words := strings.Fields(env)
	addr, gateway, dir := words[0], words[1], words[2]
	stdin := bufio.NewReader(os.Stdin)
	if _, err := stdin.ReadString('\n'); err != nil {
		return err
	}
	if err := errors.Join(ip("link", "set", "lo", "up"), ip("addr", "add", addr+"/30", "dev", "eth0"),
		ip("link", "set", "eth0", "up"), ip("route", "add", "default", "via", gateway)); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=755"); err != nil {
		return err
	}
	s, err := dataplanetest.Start(&dataplanetest.Options{Password: podPassword,
		HAProxy: &dataplanetest.HAProxy{Dir: dir, Binary: os.Getenv(podHAProxyEnv)}})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := servePod(s); err != nil {
		return err
	}
	fmt.Println("pod is ready")
	_, _ = io.Copy(io.Discard, stdin) // until whoever started it is done with it
	return nil
}

// servePod opens the ports of a pod.
func servePod(s *dataplanetest.Server) error {
	if binary := os.Getenv(dataplaneAPIEnv); binary != "" {
		if err := startDataplaneAPI(s, binary); err != nil {
			return err
		}
	} else if err := listen(podAPIPort, s); err != nil {
		return err
	}
	control := http.NewServeMux()
	control.HandleFunc("POST /failreload", func(http.ResponseWriter, *http.Request) { s.FailReload("a reload that the test made fail") })
	return listen(podControlPort, control)
}

func listen(port string, h http.Handler) error {
	l, err := net.Listen("tcp4", ":"+port)
	if err != nil {
		return err
	}
	go func() {
		srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
		fmt.Println("serving:", srv.Serve(l))
	}()
	return nil
}

// startDataplaneAPI puts a real Dataplane API in front of the haproxy of s.
func startDataplaneAPI(s *dataplanetest.Server, binary string) error {
	reload, master := s.ReloadCommand()
	l := s.Layout()
	dir, haproxy := filepath.Dir(l.ConfigPath()), os.Getenv(podHAProxyEnv)
	if haproxy == "" {
		haproxy = "haproxy"
	}
	settings := fmt.Sprintf(`config_version: 2
name: test
dataplaneapi:
  host: 0.0.0.0
  port: %[1]s
  scheme: [http]
  user: [{name: admin, password: %[2]s, insecure: true}]
  transaction: {transaction_dir: %[3]s/tx, backups_number: 0}
  resources: {maps_dir: %[4]s, ssl_certs_dir: %[5]s, general_storage_dir: %[6]s, spoe_dir: %[3]s/spoe, dataplane_storage_dir: %[3]s/dp}
haproxy:
  config_file: %[7]s
  haproxy_bin: %[8]s
  master_worker_mode: true
  master_runtime: %[9]s
  reload: {reload_delay: 1, reload_strategy: custom, reload_cmd: %[10]s, restart_cmd: "true"}
`, podAPIPort, podPassword, dir, l.Dir(dataplane.Map), l.Dir(dataplane.Certificate), l.Dir(dataplane.General),
		l.ConfigPath(), haproxy, master, reload)
	file := filepath.Join(dir, "dataplaneapi.yml")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(binary, "-f", file)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for {
		conn, err := net.Dial("tcp", "127.0.0.1:"+podAPIPort)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		<-time.After(20 * time.Millisecond)
	}
}
