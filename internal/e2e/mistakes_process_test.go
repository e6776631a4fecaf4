package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hangingCheck is a haproxy that checks no configuration as long as a file is there.
const hangingCheck = `#!/bin/sh
case " $* " in *" -c "*) while [ -e "%[1]s/hang" ]; do sleep 0.1; done ;; esac
exec %[2]s "$@"
`

func runProcess(t *testing.T, b *board, g *group) {
	state, bin := shortDir(t), shortDir(t)
	must(t, unix.Mount("tmpfs", state, "tmpfs", 0, "size=16m,mode=755"))
	t.Cleanup(func() {
		if err := unix.Unmount(state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	real := binaryOf(t, "haproxy")
	must(t, os.WriteFile(filepath.Join(bin, "haproxy"), fmt.Appendf(nil, hangingCheck, bin, real), 0o755))
	s := startFolderWith(t, b, g, options{state: state, env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}}, 4, "-drift-interval", "1s")
	s.bin = bin
	s.runAll(g)
}

// processMistakes are what happens to HAProxy, its files, and the controller.
var processMistakes = []mistake{
	{name: "the worker is killed", noSite: true, outage: true, passing: true, plant: func(sc *scene) {
		sc.fatal(syscall.Kill(sc.c.mustWorker(), syscall.SIGKILL))
	}, says: []string{"HAProxy", "ended"}},
	{name: "the master is killed", noSite: true, outage: true, passing: true, plant: func(sc *scene) {
		sc.fatal(syscall.Kill(sc.master(), syscall.SIGKILL))
	}, says: []string{"HAProxy", "ended"}},
	{name: "HAProxy is killed four times", noSite: true, outage: true, passing: true, plant: func(sc *scene) {
		for range 4 {
			sc.kill()
			eventually(sc.t, "HAProxy is back", sc.plain.expectStatus("others.test", "/", 200))
		}
	}, says: []string{"HAProxy", "ended"}},
	{name: "the worker is stopped", noSite: true, outage: true, unready: true, plant: func(sc *scene) {
		worker := sc.c.mustWorker()
		sc.fatal(syscall.Kill(worker, syscall.SIGSTOP))
		sc.undo = append(sc.undo, func() { sc.fatal(syscall.Kill(worker, syscall.SIGCONT)) })
	}, says: []string{"HAProxy", "answer"}},
	{name: "the master is stopped", noSite: true, plant: func(sc *scene) {
		master := sc.master()
		sc.fatal(syscall.Kill(master, syscall.SIGSTOP))
		sc.undo = append(sc.undo, func() { sc.fatal(syscall.Kill(master, syscall.SIGCONT)) })
	}, says: []string{"HAProxy", "master", "answer"}},
	{name: "the port is taken while HAProxy is down", noSite: true, outage: true, unready: true, plant: func(sc *scene) {
		sc.c.freeze()
		defer sc.c.thaw()
		sc.kill()
		sc.fatal(poll(sc.t.Context(), patience, func() error {
			taken, err := net.Listen("tcp", sc.c.http)
			if err == nil {
				sc.undo = append(sc.undo, func() { sc.fatal(taken.Close()) })
			}
			return err
		}))
	}, says: []string{"HAProxy", ":8080", "in use"}},
	{name: "a check of HAProxy that hangs", plant: func(sc *scene) {
		hang := filepath.Join(sc.bin, "hang")
		sc.fatal(os.WriteFile(hang, nil, 0o644))
		sc.undo = append(sc.undo, func() { sc.fatal(os.Remove(hang)) })
		sc.edit("198.51.100.20", "198.51.100.30", "198.51.100.21", "198.51.100.31")
		sc.add("hang-"+sc.file(), strings.ReplaceAll(siteManifest, "SITE", "hang-SITE"))
	}, also: func(sc *scene) error {
		return answeredBy(sc.plain, sc.host(), []string{"198.51.100.30:8000", "198.51.100.31:8000"})()
	}, says: []string{"haproxy"}, long: true},
	{name: "the disk is full", plant: func(sc *scene) {
		filler := filepath.Join(sc.c.state, "filler")
		err := os.WriteFile(filler, make([]byte, 32<<20), 0o600)
		if !errors.Is(err, unix.ENOSPC) {
			sc.t.Fatalf("the disk is not full: %v", err)
		}
		sc.undo = append(sc.undo, func() { sc.fatal(os.Remove(filler)) })
		sc.edit("198.51.100.20", "198.51.100.30", "198.51.100.21", "198.51.100.31")
		sc.add("full-"+sc.file(), strings.ReplaceAll(siteManifest, "SITE", "full-SITE"))
	}, also: func(sc *scene) error {
		return answeredBy(sc.plain, sc.host(), []string{"198.51.100.30:8000", "198.51.100.31:8000"})()
	}, says: []string{"no space left"}},
	{name: "the folder of the state is read-only", known: atTimes + "a line more, of a new file that is seen in two parts", plant: func(sc *scene) {
		state := sc.c.state
		sc.fatal(unix.Mount(state, state, "", unix.MS_BIND, ""))
		sc.fatal(unix.Mount("", state, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		sc.undo = append(sc.undo, func() { sc.fatal(unix.Unmount(state, unix.MNT_DETACH)) })
		sc.edit("198.51.100.20", "198.51.100.30", "198.51.100.21", "198.51.100.31")
		sc.add("readonly-"+sc.file(), strings.ReplaceAll(siteManifest, "SITE", "readonly-SITE"))
	}, also: func(sc *scene) error {
		return answeredBy(sc.plain, sc.host(), []string{"198.51.100.30:8000", "198.51.100.31:8000"})()
	}, says: []string{"read-only"}},
	{name: "somebody deletes a route in the running HAProxy", outage: true, passing: true, plant: func(sc *scene) {
		sc.runtime("del map MAP "+sc.host()+"/", "prefix.map")
	}, says: []string{"another writer changed this instance"}},
	{name: "somebody disables a server in the running HAProxy", outage: true, passing: true, plant: func(sc *scene) {
		sc.runtime("set server shop_"+sc.site+"_80/s1 state maint", "")
	}, says: []string{"another writer changed this instance"}},
	{name: "the controller is killed and started again", silent: true, plant: func(sc *scene) {
		sc.fatal(sc.c.crash())
		time.Sleep(500 * time.Millisecond) // HAProxy is alone for so long
		sc.fatal(sc.c.again())
		sc.c.awaitReady(patience)
	}},
	{name: "a manifest is broken at a restart", plant: func(sc *scene) {
		sc.edit("ingressClassName:", "ingressClasName:")
		sc.restart()
	}, says: []string{"SITE.yaml:5", "ingressClasName"}},
	{name: "the folder is gone at a restart", plant: func(sc *scene) {
		away := filepath.Join(env.dir, "away2")
		sc.fatal(os.Rename(sc.manifest.dir, away))
		sc.undo = append(sc.undo, func() {
			sc.fatal(os.Rename(away, sc.manifest.dir))
			if sc.c.ended() != nil {
				sc.fatal(sc.c.again())
			}
		})
		sc.restart()
	}, says: []string{"DIR"}},
}

// binaryOf is a program in PATH.
func binaryOf(t *testing.T, name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH") + ":/usr/sbin:/usr/local/sbin") {
		if path := filepath.Join(dir, name); unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	t.Fatalf("no %s in PATH", name)
	return ""
}

// master is the process of HAProxy that has the worker.
func (sc *scene) master() int {
	sc.t.Helper()
	sc.c.mustWorker()
	all, err := sc.c.procs()
	sc.fatal(err)
	return all[0].pid
}

// kill ends all processes of HAProxy.
func (sc *scene) kill() {
	sc.t.Helper()
	eventually(sc.t, "HAProxy is killed", func() error {
		all, err := sc.c.procs()
		if err != nil {
			return err
		}
		var pids []int
		for _, pid := range append(descendants(all[0].pid), all[0].pid) {
			pids = append(pids, pid)
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with the other
		}
		return poll(sc.t.Context(), time.Second, func() error { return gone(pids) })
	})
}

// runtime tells the running HAProxy something, in which MAP is the number of a map.
func (sc *scene) runtime(line, file string) {
	sc.t.Helper()
	var answers []string
	for _, socket := range sockets(sc.c.state) {
		maps, err := command(socket, "show map")
		if err != nil {
			continue
		}
		for row := range strings.Lines(maps) {
			if id, _, _ := strings.Cut(row, " "); file != "" && strings.Contains(row, file) {
				line = strings.ReplaceAll(line, "MAP", "#"+id)
			}
		}
		text, err := command(socket, line)
		if err == nil && strings.TrimSpace(text) == "" {
			return
		}
		answers = append(answers, fmt.Sprint(text, err))
	}
	sc.t.Fatalf("no socket takes %q: %q", line, answers)
}
