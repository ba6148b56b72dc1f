package source

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/lists"
	"ken/internal/testkit/sourcetest"
)

func lineCodes(b capability.Batch) string {
	var out []string
	for _, p := range b.Problems {
		out = append(out, fmt.Sprintf("%d %s", p.Origin.Line, p.Code))
	}
	return strings.Join(out, ", ")
}

// TestChannelListLimits: what would take long to parse is refused at once.
func TestChannelListLimits(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "channels.yaml", "channels:\n"+strings.Repeat("- {platform: a, description: A.}\n", 12_000))
	_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	if got := lineCodes(b); !strings.HasSuffix(got, "bad-list") || len(b.Capabilities) != 0 {
		t.Errorf("problems = %q with %d capabilities, want one bad-list and none", got, len(b.Capabilities))
	}
}

func FuzzChannels(f *testing.F) {
	for _, s := range []string{
		"channels:\n- {platform: a, description: A.}\n", "- {platform: a}", `{"channels":{"a":{"tags":"x, y"}}}`, "channels: {a: b}", "channels: [1, null, [x]]", "channels:\n- platform: [x]\n",
	} {
		f.Add([]byte(s))
	}
	sourcetest.SeedAttacks(f, func(_, quoted string) {
		f.Add([]byte("channels: [{platform: " + quoted + ", description: " + quoted + "}]\nextensions: [{name: " + quoted + "}]\n"))
	})
	fuzzList(f, lists.ChannelFormat(), lists.ExtensionListFormat())
}

// fuzzList reads any bytes as each of the formats.
func fuzzList(f *testing.F, formats ...format.Format) {
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("reading %q hangs", data)) })
		defer watchdog.Stop()
		for _, form := range formats {
			checkUnit(t, readAs(form, "list.yaml", data))
		}
	})
}
