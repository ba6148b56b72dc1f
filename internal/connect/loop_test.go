package connect

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"ken/internal/secret"
	"ken/internal/testkit"
)

func loopOptions(home string) Options {
	return Options{Where: Where{Client: "claude", Home: home}, Entry: Entry{Command: "/usr/local/bin/ken"}}
}

func loopVault(home string) *Vault {
	return NewVault(filepath.Join(home, "kept"), secret.New(secret.Config{Dir: filepath.Join(home, "secrets")}))
}

// loop connects and disconnects until it is killed, and says so on each turn.
func loop() {
	home := os.Getenv("KEN_CONNECT_LOOP")
	for {
		p, err := Prepare(loopOptions(home))
		if err == nil {
			err = Apply(context.Background(), p, loopVault(home))
		}
		if err == nil {
			fmt.Println("on")
			_, err = Undo(context.Background(), "claude", loopVault(home), false)
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("off")
	}
}

// Whenever the process is killed, the file is the old one or the new one, and
// disconnecting gives the old one.
func TestKilled(t *testing.T) {
	testkit.CI(t, "kills processes")
	home := t.TempDir()
	path := filepath.Join(home, ".claude.json")
	before := fmt.Appendf(nil, `{"mcpServers": {"a": {"command": "a", "env": {"A_TOKEN": "s3cr3ts3cr3t"}}}, "pad": %q}`, bytes.Repeat([]byte("x"), 100_000))
	testkit.OK(t, os.WriteFile(path, before, 0o600))
	p, err := Prepare(loopOptions(home))
	if err != nil || len(p.Files) != 1 {
		t.Fatalf("Prepare() = %v, %v", p, err)
	}
	after := p.Files[0].After
	self := testkit.Must(os.Executable())(t)
	for round := range 12 {
		cmd := exec.Command(self)
		cmd.Env = []string{"KEN_CONNECT_LOOP=" + home}
		out := testkit.Must(cmd.StdoutPipe())(t)
		testkit.OK(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range round + 1 { // so that each round stops at another step
			if !lines.Scan() || lines.Text() != "on" && lines.Text() != "off" {
				t.Fatalf("the loop said %q", lines.Text())
			}
		}
		testkit.OK(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, before) && !bytes.Equal(got, after) {
			t.Fatalf("round %d: the file is neither the old nor the new one (%d bytes, %v)", round, len(got), err)
		}
		if names, err := Connected(t.Context(), loopVault(home)); err != nil || bytes.Equal(got, after) && !slices.Contains(names, "claude") {
			t.Fatalf("round %d: Connected() = %v, %v, and the file is the new one", round, names, err)
		}
		// What was left lets the next one go on.
	}
	if names, err := Connected(t.Context(), loopVault(home)); err != nil {
		t.Fatal(err)
	} else if slices.Contains(names, "claude") {
		testkit.Must(Undo(t.Context(), "claude", loopVault(home), false))(t)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, before) {
		t.Errorf("at the end the file is not what it was (%v)", err)
	}
}

// What is kept is sealed, bound to its key, and gone after use.
func TestVault(t *testing.T) {
	home := t.TempDir()
	v := loopVault(home)
	ctx := t.Context()
	if _, err := v.Load(ctx, "a"); err == nil {
		t.Error("Load() of nothing succeeded")
	}
	testkit.OK(t, v.Save(ctx, "a", []byte("ghp_secret_in_a_file")))
	raw, err := os.ReadFile(filepath.Join(home, "kept", "a.sealed"))
	if err != nil || bytes.Contains(raw, []byte("ghp_")) {
		t.Errorf("the file is not sealed (%v)", err)
	}
	if info, err := os.Stat(filepath.Join(home, "kept", "a.sealed")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v, want 0600", info.Mode(), err)
	}
	if got, err := loopVault(home).Load(ctx, "a"); err != nil || string(got) != "ghp_secret_in_a_file" {
		t.Errorf("Load() = %q, %v", got, err)
	}
	testkit.OK(t, os.WriteFile(filepath.Join(home, "kept", "b.sealed"), raw, 0o600))
	if _, err := v.Load(ctx, "b"); err == nil {
		t.Error("Load() under another key succeeded")
	}
	raw[len(raw)-1] ^= 1
	testkit.OK(t, os.WriteFile(filepath.Join(home, "kept", "a.sealed"), raw, 0o600))
	if _, err := v.Load(ctx, "a"); err == nil {
		t.Error("Load() of a damaged file succeeded")
	}
	if err := v.Delete(ctx, "a"); err != nil {
		t.Error(err)
	}
	if err := v.Delete(ctx, "a"); err != nil {
		t.Errorf("Delete() of nothing = %v", err)
	}
}
