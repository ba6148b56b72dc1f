package config

import (
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"ken/internal/testkit"
	"ken/internal/yamledit"
)

// keyLine is a line of the sample that has a key commented out.
var keyLine = regexp.MustCompile(`(?m)^(  )?# ([a-z][A-Za-z0-9]*: .*)$`)

// TestSample: the sample says the defaults, with every key commented out and
// with every key given.
func TestSample(t *testing.T) {
	sample := string(Sample())
	given := keyLine.ReplaceAllString(sample, "$1$2")
	if n, want := len(keyLine.FindAllString(sample, -1)), len(settings()); n != want {
		t.Fatalf("the sample has %d key lines, want %d", n, want)
	}
	places, _, _ := at(t)
	file := filepath.Join(places.Home, "ken.yaml")
	for _, text := range []string{sample, given} {
		write(t, file, text)
		c, err := Load(places, "")
		if err != nil || !reflect.DeepEqual(bare(c), bare(Default())) {
			t.Errorf("Load of\n%s= %+v, %v, want the defaults", text, c, err)
		}
		for _, s := range c.Settings() {
			if said := s.Origin != "default" && s.Origin != "profile personal"; said != (text == given) {
				t.Errorf("%s has origin %s", s.Key, s.Origin)
			}
		}
	}
	// As a project's file it neither widens nor changes anything.
	write(t, file, "")
	write(t, filepath.Join(places.Project, "ken.yaml"), given)
	if c, err := Load(places, ""); err != nil || !reflect.DeepEqual(bare(c), bare(Default())) {
		t.Errorf("Load of a project's sample = %+v, %v, want the defaults", c, err)
	}
}

func TestSampleIsEditable(t *testing.T) {
	testkit.CI(t, "sets every key")
	sample := string(Sample())
	for _, s := range settings() {
		file := filepath.Join(t.TempDir(), "ken.yaml")
		write(t, file, sample)
		d := Default()
		value := yamledit.Flow(s.show(&d))
		if err := Set(file, s.name, value); err != nil {
			t.Errorf("Set(%s, %s) = %v", s.name, value, err)
			continue
		}
		// Exactly one line more, below the one that has it commented out.
		_, key, inSection := strings.Cut(s.name, ".")
		indent := "  "
		if !inSection {
			key, indent = s.name, ""
		}
		section := strings.Index(sample, "\n"+strings.TrimSuffix(s.name, "."+key)+":\n")
		line := indent + "# " + key + ": " + value + "\n"
		before, after := sample[:max(section, 0)], sample[max(section, 0):]
		if got, want := read(t, file), before+strings.Replace(after, line, line+indent+key+": "+value+"\n", 1); got != want || want == sample {
			t.Errorf("Set(%s, %s) in the sample gave\n%s", s.name, value, got)
		}
	}
}
