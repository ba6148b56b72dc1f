package untrusted

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/testkit"
)

// TestToolNameShadowing expects every row flagged by itself, or as an imitation of
// the name it shadows when that is known.
func TestToolNameShadowing(t *testing.T) {
	rows := attacks(t, "tool_name_shadowing.jsonl")
	alone, hard := 0, 0
	for _, row := range rows {
		found := NameFindings(row.Text)
		imitations := NewNames([]string{row.Shadows}).Imitations(row.Text)
		if len(found) > 0 {
			alone++
		}
		if len(found)+len(imitations) == 0 {
			t.Errorf("%s: %+q is not flagged, want a finding or an imitation of %q", row.Kind, row.Text, row.Shadows)
		}
		if Worst(found) == Hard || slices.ContainsFunc(imitations, func(i Imitation) bool { return i.Severity == Hard }) {
			hard++
		}
	}
	t.Logf("%d rows, %d have findings by themselves, %d are hard", len(rows), alone, hard)
	if len(rows) != 94 {
		t.Errorf("corpus has %d rows, want 94", len(rows))
	}
}

// TestLargeRealNames expects that real names are left in peace.
func TestLargeRealNames(t *testing.T) {
	testkit.CI(t, "whole catalogs")
	for _, c := range []struct {
		catalog string
		most    int
	}{{"npm-mcp", 0}, {"toucan", 10}} {
		t.Run(c.catalog, func(t *testing.T) {
			tools := catalog(t, c.catalog)
			names := make([]string, len(tools))
			flagged := 0
			for i, tool := range tools {
				names[i] = tool.Name
				if found := NameFindings(tool.Name); len(found) > 0 {
					flagged++
					t.Logf("NameFindings(%+q) = %v", tool.Name, found)
				}
			}
			if flagged > c.most {
				t.Errorf("%d of %d real names have findings, want at most %d", flagged, len(tools), c.most)
			}
			known := NewNames(names)
			why := map[Why]int{}
			slices.Sort(names)
			for _, name := range slices.Compact(names) {
				for _, i := range known.Imitations(name) {
					why[i.Why]++
					if i.Severity == Hard {
						t.Errorf("real name %q imitates %q by %s, want no hard imitation", name, i.Known, i.Why)
					}
					if i.Why == WhyLookAlike {
						t.Logf("%q looks like %q", name, i.Known)
					}
				}
			}
			t.Logf("%d of %d names have findings; imitations among them: %v", flagged, len(tools), why)
		})
	}
}

func TestSkeleton(t *testing.T) {
	for _, names := range [][]string{
		{"read_file", "READ_FILE", "read-file", "read.file", "read file", "readFile", "rеad_filе", "ｒｅａｄ＿ｆｉｌｅ",
			"read_f11e", "read_fiIe", "re\u200bad_file", "réad_file", "𝐫𝐞𝐚𝐝_file"},
		{"send_email", "send_ernail", "send_ema1l", "sEnd–emaíl"},
		{"view", "vievv", "VIEvv"},
		{"shell", "she11", "ѕһеӏӏ", "sheⅼⅼ"},
		{"log0", "lOgo", "1ogo"},
	} {
		for _, n := range names {
			if got, want := Skeleton(n), Skeleton(names[0]); got != want {
				t.Errorf("Skeleton(%+q) = %q, want %q as of %q", n, got, want, names[0])
			}
			if got, want := string(AppendSkeleton(nil, n)), Skeleton(n); got != want {
				t.Errorf("AppendSkeleton(%+q) = %q, want %q", n, got, want)
			}
		}
	}
	different := []string{"read_file", "write_file", "read_files", "server__read_file", "прочитать", "読む", "tool_2", "tool_3"}
	seen := map[string]string{}
	for _, n := range different {
		if other, ok := seen[Skeleton(n)]; ok {
			t.Errorf("Skeleton(%q) = Skeleton(%q), want different", n, other)
		}
		seen[Skeleton(n)] = n
	}
}

func TestImitations(t *testing.T) {
	known := NewNames([]string{"read_file", "send_email", "read_file", "shell"})
	for _, c := range []struct {
		name string
		want []Imitation
	}{
		{"read_file", nil},
		{"write_file", nil},
		{"READ_FILE", []Imitation{{"read_file", WhyCase, Soft}}},
		{"read-file", []Imitation{{"read_file", WhySeparator, Soft}}},
		{"readFile", []Imitation{{"read_file", WhySeparator, Soft}}},
		{"read_file ", []Imitation{{"read_file", WhyInvisible, Hard}}},
		{"read\u200b_file", []Imitation{{"read_file", WhyInvisible, Hard}}},
		{"ｒead_file", []Imitation{{"read_file", WhyWidth, Hard}}},
		{"rеad_file", []Imitation{{"read_file", WhyHomoglyph, Hard}}},
		{"send_ernail", []Imitation{{"send_email", WhyLookAlike, Hard}}},
		{"she11", []Imitation{{"shell", WhyLookAlike, Hard}}},
		{"server__shell", []Imitation{{"shell", WhyNamespace, Soft}}},
		{"../SHELL", []Imitation{{"shell", WhyNamespace, Soft}}},
	} {
		if got := known.Imitations(c.name); !slices.Equal(got, c.want) {
			t.Errorf("Imitations(%+q) = %v, want %v", c.name, got, c.want)
		}
	}
	if got := (*Names)(nil).Imitations("a"); got != nil {
		t.Errorf("nil.Imitations = %v, want none", got)
	}
}

// TestSkeletonProperties checks that the skeleton forgets exactly what it says.
func TestSkeletonProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{1,8}(_[a-z]{1,8}){0,3}`).Draw(t, "name")
		if upper := strings.ToUpper(name); Skeleton(upper) != Skeleton(name) {
			t.Errorf("Skeleton(%q) = %q, want %q", upper, Skeleton(upper), Skeleton(name))
		}
		at := rapid.IntRange(0, len(name)).Draw(t, "at")
		hidden := rapid.SampledFrom([]string{"\u200b", "\u202e", "\u00ad", "\ufe0f", "\U000E0061", "\x00", "-", "_", " ", "\u0301"}).Draw(t, "hidden")
		if n := name[:at] + hidden + name[at:]; Skeleton(n) != Skeleton(name) {
			t.Errorf("Skeleton(%+q) = %q, want %q", n, Skeleton(n), Skeleton(name))
		}
	})
}

// TestPlainNamesHaveNoFindings: names that are passed over are those of which the long
// look finds nothing.
func TestPlainNamesHaveNoFindings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9_\-][a-zA-Z0-9_./:<%é -]{0,6}|[a-zA-Z0-9_-]{120,135}`).Draw(t, "name")
		if found := nameFindings(name); plainName(name) && len(found) > 0 {
			t.Fatalf("the plain name %q has findings: %v", name, found)
		}
	})
	for name, want := range map[string]bool{"read_file-2": true, "": false, "-x": false, "a.b": false, "a b": false, strings.Repeat("a", maxName+1): false} {
		if plainName(name) != want {
			t.Errorf("plainName(%q) = %v, want %v", name, !want, want)
		}
	}
}
