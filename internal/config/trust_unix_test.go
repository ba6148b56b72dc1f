//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/dirs"
)

// TestLoadTrustsOwnPlaces: settings that every user can change are not read, and
// neither are those of another user.
func TestLoadTrustsOwnPlaces(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(p dirs.Places, file string) error
		want  string
	}{
		"open folder":      {func(p dirs.Places, _ string) error { return os.Chmod(p.Home, 0o777) }, "every user can write there"},
		"open file":        {func(_ dirs.Places, file string) error { return os.Chmod(file, 0o666) }, "every user can write there"},
		"folder of a team": {func(p dirs.Places, _ string) error { return os.Chmod(p.Home, 0o775) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			places, _, _ := at(t)
			file := filepath.Join(places.Home, "ken.yaml")
			write(t, file, "policy: {profile: team}\n")
			if err := tt.spoil(places, file); err != nil {
				t.Fatal(err)
			}
			_, err := Load(places, "")
			if tt.want == "" {
				if err != nil {
					t.Errorf("Load() = %v, want no error", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "chmod o-w") {
				t.Errorf("Load() = %v, want %q and what to do", err, tt.want)
			}
		})
	}
}
