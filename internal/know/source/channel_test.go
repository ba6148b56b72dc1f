package source

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/lists"
	"ken/internal/testkit/sourcetest"
)

func TestChannels(t *testing.T) {
	const yaml = `channels:
  - platform: telegram
    displayName: Telegram
    description: Send messages.
    category: fun
    tags: [messaging, bot]
    requiredSecrets: [TELEGRAM_BOT_TOKEN]
    capabilities: [text, images]
  - platform: signal
    description: Send Signal messages.
    required_bins: [signal-cli]
`
	dir := t.TempDir()
	sourcetest.Write(t, dir, "channels.yaml", yaml)
	_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
	if len(b.Capabilities) != 2 || len(b.Problems) != 0 {
		t.Fatalf("%d capabilities, problems %v, want 2 and none", len(b.Capabilities), b.Problems)
	}
	got := b.Capabilities[0]
	want := &capability.Capability{
		ID: "channel:telegram", Kind: capability.KindChannel, Name: "telegram", DisplayName: "Telegram",
		Description: "Send messages.", Category: "communication", Tags: []string{"messaging", "bot"},
		RequiredSecrets: []string{"TELEGRAM_BOT_TOKEN"},
		Meta:            map[string]string{"category": "fun", "capabilities": `["text","images"]`},
		Origin:          capability.Origin{Source: dir, Format: "channel", Location: capability.Local, Path: dir + "/channels.yaml", Line: 2},
		Trust:           capability.TrustUser, Hash: got.Hash,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("telegram (-want +got):\n%s", diff)
	}
	if c := b.Capabilities[1]; c.ID != "channel:signal" || c.Category != "communication" || c.RequiredBins[0] != "signal-cli" {
		t.Errorf("signal = %+v", c)
	}
}

// TestChannelForms: every way of writing the list gives the same channels, and
// a bad entry costs only itself.
func TestChannelForms(t *testing.T) {
	tests := []struct {
		name, file, text string
		ids              string
		problems         string // "line code", apart by commas
	}{
		{"map with a list", "channels.yaml", "channels:\n- {platform: a, description: A.}\n- {platform: b, description: B.}\n", "channel:a channel:b", ""},
		{"bare list", "channels.yml", "- {platform: a, description: A.}\n", "channel:a", ""},
		{"map of maps", "channels.yaml", "channels:\n  a: {description: A.}\n", "channel:a", ""},
		{"json", "channels.json", `{"channels":[{"platform":"a","description":"A."}]}`, "channel:a", ""},
		{"bare json", "channels.json", `[{"platform":"a","description":"A."}]`, "channel:a", ""},
		{"empty", "channels.yaml", "", "", ""},
		{"empty list", "channels.yaml", "channels:\n", "", ""},
		{"no list", "channels.yaml", "canals:\n- {platform: a}\n", "", "1 bad-list"},
		{"not a list", "channels.yaml", "channels: none\n", "", "1 bad-list"},
		{"broken", "channels.yaml", "channels:\n- platform: a\n -b\n", "", "3 bad-list"},
		{"alias", "channels.yaml", "channels:\n- &a {platform: a}\n- *a\n", "", "2 bad-list"},
		{"text for an entry", "channels.yaml", "channels:\n- a\n- {platform: b, description: B.}\n", "channel:b", "2 bad-entry"},
		{"no platform", "channels.yaml", "channels:\n- {description: A.}\n- {platform: b, description: B.}\n", "channel:b", "2 no-name"},
		{"name for platform", "channels.yaml", "channels:\n- {name: a, description: A.}\n", "channel:a", ""},
		{"no description", "channels.yaml", "channels:\n- {platform: a}\n", "channel:a", "2 no-description"},
		{"wrong type", "channels.yaml", "channels:\n- platform: a\n  description: A.\n  tags: {x: 1}\n", "channel:a", "4 bad-value"},
		{"beside the list", "channels.yaml", "version: 1\nchanels: []\nchannels:\n- {platform: a, description: A.}\n", "channel:a", "2 unknown-key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sourcetest.Write(t, dir, tt.file, tt.text)
			_, b := load(t, TreeConfig{Path: dir, Trust: capability.TrustUser})
			if got := sourcetest.IDs(b); got != tt.ids {
				t.Errorf("capabilities = %q, want %q", got, tt.ids)
			}
			if got := lineCodes(b); got != tt.problems {
				t.Errorf("problems = %q, want %q: %v", got, tt.problems, b.Problems)
			}
		})
	}
}

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

func TestKeysThatNobodyKnowsAreMentioned(t *testing.T) {
	p := loaded(t, map[string]string{
		"channels.yaml":        "channels:\n  - platform: irc\n    description: Chat.\n    tagz: [a]\n",
		"extensions.yaml":      "extensions:\n  - name: e\n    description: Does e.\n    avalable: true\n",
		"presets.yaml":         "presets:\n  - name: p\n    members: [a]\n    membrs: [b]\n",
		"pack/manifest.json":   `{"id":"pack","description":"A pack.","permissions_required":["exec"],"colour":"red"}`,
		"pack/commands.yaml":   "slash_commands:\n  - name: /go\n    summry: x\n    description: Goes.\n    runner: exec.go\n    actions:\n      - id: run\n        description: Runs.\n        timeoutsec: 5\n        timeout: 5\n",
		"single/manifest.json": `{"id":"single","description":"One.","permissions_required":["exec"]}`,
		"single/commands.yaml": "slash_commands:\n  - name: /one\n    description: One.\n    maps_to:\n      runner: exec.one\n      runers: x\n",
	})
	for _, want := range []string{
		"channels.yaml:4 warning unknown-key: channel has no key tagz; it is kept as metadata; did you mean tags?",
		"extensions.yaml:4 warning unknown-key: extension has no key avalable; it is kept as metadata; did you mean available?",
		"presets.yaml:4 warning unknown-key: a preset has no key membrs; it is not kept; a preset has a name and members",
		"pack/manifest.json:1 warning unknown-key: extension has no key colour; it is kept as metadata",
		"pack/commands.yaml:3 warning unknown-key: /go has no key summry; it is kept as metadata; did you mean summary?",
		"pack/commands.yaml:10 warning unknown-key: /go run has no key timeout; it is kept as metadata",
		"single/commands.yaml:6 warning unknown-key: /one has no key maps_to.runers; it is kept as metadata",
	} {
		p.wants(want)
	}
	if got := p.find("channel:irc").Meta["tagz"]; got != `["a"]` {
		t.Errorf("Meta[tagz] = %q, want it kept", got)
	}
	if got := p.find("command:go/run").Meta["timeout"]; got != "5" {
		t.Errorf("Meta[timeout] = %q, want it kept", got)
	}
	if len(p.Problems) != 7 {
		t.Errorf("%d problems, want seven:\n%s", len(p.Problems), p.list())
	}
}
