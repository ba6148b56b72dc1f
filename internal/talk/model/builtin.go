package model

import (
	"slices"
	"sync"
	"time"
)

// Builtin returns the rows that Ken comes with. They are facts of a date and
// grow old: [Parse] reads a person's own, which count before them.
//
// Prices are list prices of the standard tier. Where a promotion makes a model
// cheaper for a while, Source says so and the list price stands, so that a
// limit on costs errs on the safe side. What Source calls not confirmed was not
// found with the vendor: check a price that matters, and put a row of your own
// before it.
func Builtin() []Row {
	rows := slices.Clone(builtin())
	for i := range rows {
		rows[i].DeliveryModes = slices.Clone(rows[i].DeliveryModes)
	}
	return rows
}

var builtin = sync.OnceValue(func() []Row {
	return slices.Concat(gptRows(), claudeRows(), geminiRows(), openRows())
})

const day = "2026-11-15" // on which the facts were looked up

// tokens of windows, as the vendors round them
const (
	k = 1_000
	m = 1_000_000
)

// flat is a price without a charge for writing to the cache.
func flat(input, output, read float64) Price {
	return Price{Input: input, Output: output, CachedRead: read, CacheWrite: input}
}

// written is a price where writing to the cache costs a quarter more.
func written(input, output, read float64) Price {
	return Price{Input: input, Output: output, CachedRead: read, CacheWrite: 1.25 * input}
}

// long adds the step for long requests.
func long(p Price, after int, input, output float64) Price {
	p.LongAfter, p.LongInput, p.LongOutput = after, input, output
	return p
}

func gptRows() []Row {
	const source = "OpenAI's pricing and model pages, its guides to prompt caching and tool search; windows, output limits and prices of older models as commonly reported, not confirmed there"
	// Up to GPT-5.5: matched without marks, from 1,024 tokens in steps of 128,
	// gone after 5 to 10 minutes without use.
	plain := Cache{Least: 1024, Step: 128, Life: 5 * time.Minute}
	// From GPT-5.6: at marks only, four in a request of which the provider sets
	// one, any number of blocks back, kept for 30 minutes at least.
	marked := Cache{Marked: true, Marks: 4, Implicit: true, Least: 1024, Life: 30 * time.Minute}

	row := func(pattern string, window, output int, c Cache, p Price, modes ...DeliveryMode) Row {
		return Row{
			Pattern: pattern, Wire: Responses, Since: day, Source: source, Window: window, MaxOutput: output,
			DeliveryModes: every(modes...), Cache: c, Price: p, Images: true, Reasoning: true,
		}
	}
	newest := func(pattern string, p Price) Row {
		if p.Known() {
			p = long(p, 272*k, 2, 1.5)
		}
		return row(pattern, 1_050_000, 128*k, marked, p, Inline, Search)
	}
	rows := []Row{
		newest("gpt-6*", Price{}),
		newest("gpt-6.1-sol*", written(2, 10, 0.10)),
		newest("gpt-6-sol*", written(2, 10, 0.20)),
		newest("gpt-6-luna*", written(0.10, 0.50, 0.01)),
		newest("gpt-6-astra*", written(10, 50, 1)),
		newest("gpt-5.6*", written(5, 30, 0.50)), // the name without a suffix is Sol
		newest("gpt-5.6-terra*", written(2, 12, 0.20)),
		newest("gpt-5.6-luna*", written(0.20, 1.20, 0.02)),
		row("gpt-5.5*", 1_050_000, 128*k, plain, long(flat(5, 30, 0.50), 272*k, 2, 1.5), Inline, Search),
		row("gpt-5.4*", 1_050_000, 128*k, plain, long(flat(2.50, 15, 0.25), 272*k, 2, 1.5), Inline, Search),
		row("gpt-5.4-mini*", 400*k, 128*k, plain, flat(0.75, 4.50, 0.075), Inline, Search),
		row("gpt-5.4-nano*", 400*k, 128*k, plain, Price{}, Inline, Search),
		row("gpt-5*-pro*", 400*k, 128*k, plain, Price{}),
		row("gpt-5.3*", 400*k, 128*k, plain, flat(1.75, 14, 0.175)),
		row("gpt-5.2*", 400*k, 128*k, plain, flat(1.75, 14, 0.175)),
		row("gpt-5.1*", 400*k, 128*k, plain, flat(1.25, 10, 0.125)),
		row("gpt-5*", 400*k, 128*k, plain, Price{}),
		row("gpt-5", 400*k, 128*k, plain, flat(1.25, 10, 0.125)),
		row("gpt-5-20*", 400*k, 128*k, plain, flat(1.25, 10, 0.125)),
		row("gpt-5-codex*", 400*k, 128*k, plain, flat(1.25, 10, 0.125)),
		row("gpt-5-mini*", 400*k, 128*k, plain, flat(0.25, 2, 0.025)),
		row("gpt-5-nano*", 400*k, 128*k, plain, flat(0.05, 0.40, 0.005)),
		row("o3*", 200*k, 100*k, plain, Price{}),
		row("o4-mini*", 200*k, 100*k, plain, flat(1.10, 4.40, 0.275)),
	}
	for _, old := range []Row{
		row("gpt-4.1*", 1_047_576, 32_768, plain, flat(2, 8, 0.50)),
		row("gpt-4.1-mini*", 1_047_576, 32_768, plain, flat(0.40, 1.60, 0.10)),
		row("gpt-4.1-nano*", 1_047_576, 32_768, plain, flat(0.10, 0.40, 0.025)),
		row("gpt-4o*", 128*k, 16_384, plain, flat(2.50, 10, 1.25)),
		row("gpt-4o-mini*", 128*k, 16_384, plain, flat(0.15, 0.60, 0.075)),
	} {
		old.Reasoning = false
		rows = append(rows, old)
	}
	for i, r := range rows {
		switch r.Pattern {
		case "gpt-6.1-sol*":
			rows[i].Source += "; takes tools over Responses only"
		case "gpt-6-luna*":
			rows[i].Source += "; takes tools over Chat Completions only without reasoning"
		case "gpt-5.6*":
			rows[i].Source += "; a promotion to at least 2026-11-21 makes it 4, 20 and 0.40"
		}
	}
	return rows
}

func claudeRows() []Row {
	const source = "Anthropic's pricing and model pages, its guides to prompt caching and mid-conversation tool changes; windows, output limits and prices of older models as commonly reported, not confirmed there"
	row := func(pattern string, window, output, least int, p Price, modes ...DeliveryMode) Row {
		return Row{
			Pattern: pattern, Wire: Messages, Since: day, Source: source, Window: window, MaxOutput: output,
			DeliveryModes: every(modes...),
			Cache:         Cache{Marked: true, Marks: 4, Lookback: 20, Least: least, Life: 5 * time.Minute},
			Price:         p,
			Images:        true, Reasoning: true,
		}
	}
	rows := []Row{
		row("*claude*", 200*k, 32*k, 4096, Price{}),
		row("*claude-fable-5*", m, 128*k, 512, written(10, 50, 1), Inline, Search),
		row("*claude-fable-5?1*", m, 128*k, 1024, written(10, 50, 0.25), Inline, Search),
		row("*claude-fable-5?2*", m, 128*k, 1024, written(8, 40, 0.20), Inline, Search),
		row("*claude-mythos-5*", m, 128*k, 512, written(10, 50, 1), Inline, Search),
		row("*claude-mythos-5?1*", m, 128*k, 1024, written(10, 50, 0.25), Inline, Search),
		row("*claude-mythos-5?2*", m, 128*k, 1024, Price{}, Inline, Search),
		row("*claude-opus-5*", m, 128*k, 512, written(5, 25, 0.50), Inline, Search),
		row("*claude-opus-5?5*", m, 128*k, 1024, written(4, 20, 0.20), Inline, Search),
		row("*claude-sonnet-5*", m, 128*k, 1024, written(2, 10, 0.20), Search),
		row("*claude-sonnet-5?5*", m, 128*k, 1024, written(2, 10, 0.20), Inline, Search),
		row("*claude-haiku-5?5*", m, 128*k, 1024, long(written(0.10, 0.50, 0.01), 100*k, 5, 5), Inline, Search),
		row("*claude-opus-4?8*", m, 128*k, 1024, written(5, 25, 0.50), Inline, Search),
		row("*claude-opus-4?7*", m, 128*k, 4096, written(5, 25, 0.50), Search),
		row("*claude-opus-4?6*", m, 128*k, 4096, written(5, 25, 0.50), Search),
		row("*claude-opus-4?5*", 200*k, 64*k, 4096, written(5, 25, 0.50), Search),
		row("*claude-opus-4*", 200*k, 32*k, 1024, written(15, 75, 1.50)),
		row("*claude-sonnet-4?6*", m, 64*k, 2048, written(3, 15, 0.30), Search),
		row("*claude-sonnet-4?5*", 200*k, 64*k, 1024, written(3, 15, 0.30), Search),
		row("*claude-sonnet-4*", 200*k, 64*k, 1024, written(3, 15, 0.30)),
		row("*claude-haiku-4?5*", 200*k, 64*k, 4096, written(1, 5, 0.10), Search),
	}
	for i, r := range rows {
		switch r.Pattern {
		case "*claude-fable-5?1*", "*claude-fable-5?2*", "*claude-mythos-5?1*", "*claude-mythos-5?2*", "*claude-opus-5?5*", "*claude-sonnet-5?5*", "*claude-haiku-5?5*":
			rows[i].Source += "; the least prefix is that of the family before where it was larger, not confirmed"
		case "*claude-opus-4?7*", "*claude-sonnet-4?6*":
			rows[i].Source += "; sources differ on the least prefix, the larger stands"
		}
	}
	return rows
}

func geminiRows() []Row {
	const source = "Google's Gemini API pricing, model and context caching pages; implicit caching is not guaranteed and its lifetime not published, 5 minutes are assumed; windows, output limits and prices of older models as commonly reported, not confirmed there"
	row := func(pattern string, least int, p Price) Row {
		return Row{
			Pattern: pattern, Wire: Gemini, Since: day, Source: source, Window: 1_048_576, MaxOutput: 65_536,
			DeliveryModes: every(), Cache: Cache{Least: least, Life: 5 * time.Minute}, Price: p, Images: true, Reasoning: true,
		}
	}
	promoted := func(r Row, until string) Row {
		r.Source += "; a promotion to " + until + " halves the price"
		return r
	}
	const newYear = "2026-12-31"
	before := row("gemini-2.0*", 4096, Price{})
	before.MaxOutput, before.Reasoning = 8_192, false
	return []Row{
		row("gemini-*", 4096, Price{}),
		before,
		promoted(row("gemini-4-argon*", 4096, flat(4, 20, 0.20)), "2026-11-30"),
		promoted(row("gemini-3.8-flash*", 4096, flat(1.50, 7.50, 0.15)), newYear),
		promoted(row("gemini-3.7-flash*", 4096, flat(1.50, 7.50, 0.15)), newYear),
		promoted(row("gemini-3.6-flash*", 4096, flat(1.50, 7.50, 0.15)), newYear),
		row("gemini-3.5-flash*", 4096, flat(1.50, 9, 0.15)),
		row("gemini-3.5-flash-lite*", 4096, flat(0.30, 2.50, 0.03)),
		row("gemini-3.1-pro*", 4096, long(flat(2, 12, 0.20), 200*k, 2, 1.5)),
		row("gemini-3.1-flash-lite*", 4096, flat(0.25, 1.50, 0.025)),
		row("gemini-3-flash*", 4096, flat(0.50, 3, 0.05)),
		row("gemini-2.5-pro*", 2048, long(flat(1.25, 10, 0.125), 200*k, 2, 1.5)),
		row("gemini-2.5-flash*", 2048, flat(0.30, 2.50, 0.03)),
		row("gemini-2.5-flash-lite*", 2048, flat(0.10, 0.40, 0.01)),
	}
}

// openRows are the models whose weights people run themselves. Their window is
// that of the weights; a server is often started with less, and who does so
// says it in a row of their own. Running them has no price here.
func openRows() []Row {
	const source = "the model cards; the server's own prefix cache is assumed; windows, output limits and prices of older models as commonly reported, not confirmed there"
	row := func(pattern string, window int) Row {
		return Row{
			Pattern: pattern, Wire: Chat, Since: day, Source: source, Window: window, MaxOutput: 8192,
			DeliveryModes: every(), Cache: Cache{Least: 1, Life: 5 * time.Minute},
		}
	}
	api := func(pattern string, p Price, images bool) Row {
		return Row{
			Pattern: pattern, Wire: Chat, Since: day,
			Source: "DeepSeek's pricing page; the price of peak hours stands, it is half in all others",
			Window: m, MaxOutput: 384 * k, DeliveryModes: every(), Cache: Cache{Least: 64, Step: 64, Life: 5 * time.Minute},
			Price: p, Images: images, Reasoning: true,
		}
	}
	rows := []Row{
		row("*llama3*", 8_192), row("*llama-3*", 8_192),
		row("*llama3.*", 131_072), row("*llama-3.*", 131_072),
		row("*llama4*", 131_072), row("*llama-4*", 131_072),
		row("*qwen2*", 32_768), row("*qwen3*", 40_960), row("*qwen3-coder*", 262_144), row("*qwen3.?*", 262_144),
		row("*mistral*", 32_768), row("*mistral-large*", 131_072), row("*mistral-small*", 131_072), row("*mistral-nemo*", 131_072),
		row("*ministral*", 131_072), row("*devstral*", 131_072),
		row("*deepseek-r1*", 131_072), row("*deepseek-v3*", 131_072),
		row("*gemma*", 8_192), row("*gemma3*", 131_072), row("*gemma-3*", 131_072), row("*gemma4*", 131_072), row("*gemma-4*", 131_072),
		row("*gpt-oss*", 131_072),
		api("deepseek-flash*", flat(0.30, 1.20, 0.006), true),
		api("deepseek-v4-flash*", flat(0.30, 1.20, 0.006), true),
		api("deepseek-v4-pro*", flat(1.32, 3.96, 0.044), false),
	}
	for i, r := range rows {
		switch r.Pattern {
		case "*llama4*", "*llama-4*", "*gemma3*", "*gemma-3*", "*gemma4*", "*gemma-4*", "*mistral-small*":
			rows[i].Images = true
		case "*qwen3*", "*qwen3.?*", "*deepseek-r1*", "*gpt-oss*":
			rows[i].Reasoning = true
		}
	}
	return rows
}
