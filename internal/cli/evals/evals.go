// Package evals has the command ken eval, and prints its reports.
package evals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/door"
	"ken/internal/find/checkup"
	"ken/internal/find/eval"
	"ken/internal/find/vectors"
	"ken/internal/know/catalog"
)

// A Config is what the command needs of the program.
type Config struct {
	In        io.Reader
	Out       *output.Printer
	Err       io.Writer
	JSON      *bool // the flag --json, read when the command runs
	PrintJSON func(any) error

	// ConfigFile and Catalogs are the flags --config and --catalog. The command
	// sets them before it opens the program, as --compare and --corpus say.
	ConfigFile *string
	Catalogs   *[]string

	// Args makes what a check of arguments refuses an error of usage.
	Args func(check cobra.PositionalArgs) cobra.PositionalArgs

	// With runs a function with the program open.
	With func(cmd *cobra.Command, run func(context.Context, App) error) error
}

// An App is the open program, as far as the command needs it.
type App struct {
	Door    *door.Door
	Vectors *vectors.Keeper
	View    func() door.View   // the catalog, as it is now
	Ranker  func() eval.Finder // what finds in it
}

// A request is what ken eval was asked for.
type request struct {
	corpus   []string
	queries  []string
	compare  string
	baseline bool
	misses   int
}

// New returns ken eval, which measures how well capabilities are found.
func New(c Config) *cobra.Command {
	var call request
	cmd := &cobra.Command{
		Use:   "eval [--queries FILE] [--corpus PATH] [--compare A.yaml B.yaml]",
		Short: "Measure how well and how fast capabilities are found",
		Long: "Without --queries, Ken searches your catalog for each capability with the words of its own\n" +
			"description. It reports which capabilities are confused with each other and which descriptions\n" +
			"to improve.\n\n" +
			"With --queries, Ken runs every query of a labelled set. It reports how often the right\n" +
			"capabilities were found, how high they ranked, how often nothing was shown, how accurate the\n" +
			"scores are, and the time.\n\n" +
			`Queries are rows {"id","query","gold":["id",…]}; an empty gold list means that nothing should be` + "\n" +
			"shown. A gold id that is not in the catalog counts as not found. Scores and rates are 0–100.\n" +
			"With --compare, Ken runs the same queries under two configurations and reports the difference\n" +
			"with its 95% interval.",
		Example: "  ken eval\n" +
			"  ken eval --corpus tools.jsonl --queries queries.jsonl --queries out-of-scope.jsonl\n" +
			"  ken eval --corpus tools.jsonl --queries queries.jsonl --compare today.yaml tomorrow.yaml",
		Args: c.Args(func(_ *cobra.Command, given []string) error { return call.check(*c.ConfigFile, given) }),
		RunE: func(cmd *cobra.Command, given []string) error {
			*c.Catalogs = append(*c.Catalogs, call.corpus...)
			return c.eval(cmd, call, given)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&call.corpus, "corpus", nil, "the same as --catalog: find in this `path` (repeatable)")
	flags.StringArrayVar(&call.queries, "queries", nil, "labelled queries: a .jsonl `file` or - (repeatable)")
	flags.StringVar(&call.compare, "compare", "", "compare this configuration `file` (A) with the next argument (B)")
	flags.BoolVar(&call.baseline, "baseline", false, "compare with plain BM25 over the same catalog")
	flags.IntVar(&call.misses, "misses", 0, "list the `n` worst queries; without --queries, n of each list instead of 10")
	return cmd
}

// check refuses calls that mean nothing.
func (call request) check(configFile string, given []string) error {
	switch {
	case len(call.queries) == 0 && (call.compare != "" || call.baseline):
		return errors.New("--queries is missing; it names the file with labelled queries")
	case call.misses < 0:
		return fmt.Errorf("--misses %d is negative", call.misses)
	case call.compare == "" && len(given) > 0:
		return fmt.Errorf("%q is not a flag; configurations are compared with --compare A.yaml B.yaml", given[0])
	case call.compare == "":
		return nil
	case len(given) != 1:
		return fmt.Errorf("--compare takes two configuration files, A.yaml B.yaml; got %d", 1+len(given))
	case configFile != "":
		return errors.New("--config and --compare exclude each other; use one of them")
	case call.baseline:
		return errors.New("--baseline and --compare exclude each other; use one of them")
	}
	return nil
}

func (c Config) eval(cmd *cobra.Command, call request, given []string) error {
	if len(call.queries) == 0 {
		return c.checkup(cmd, call)
	}
	queries, problems, err := c.readQueries(call.queries)
	if err != nil {
		return err
	}
	if call.compare != "" {
		return c.compare(cmd, call, given[0], queries, problems)
	}
	m, err := c.measure(cmd, queries, call)
	if err != nil {
		return err
	}
	m.Problems = append(problems, m.Problems...)
	if *c.JSON {
		return c.PrintJSON(m)
	}
	c.report().report(m.Report)
	if m.Baseline != nil {
		c.Out.Linef("\nA is plain BM25, B is Ken")
		c.report().comparison(m.Baseline.Difference)
	}
	c.report().misses(m.Misses)
	return nil
}

// checkup examines the catalog without labelled queries.
func (c Config) checkup(cmd *cobra.Command, call request) error {
	return c.With(cmd, func(ctx context.Context, a App) error {
		a.Vectors.Wait(ctx)
		corpus, _ := findable(a)
		r, err := checkup.Run(ctx, a.Ranker(), corpus, a.Door.Mistaken(time.Now().Add(-checkupSpan)))
		if err != nil {
			return err
		}
		if *c.JSON {
			return c.PrintJSON(r)
		}
		c.report().checkup(r, call.misses)
		return nil
	})
}

// checkupSpan is how far back the outcome log is read.
const checkupSpan = 90 * 24 * time.Hour

// report returns what prints the results.
func (c Config) report() writer { return writer{Out: c.Out, Err: c.Err} }

// compare measures two configurations one after the other.
func (c Config) compare(cmd *cobra.Command, call request, second string, queries []eval.Query, problems []capability.Problem) error {
	var both [2]measured
	for i, file := range []string{call.compare, second} {
		*c.ConfigFile = file
		m, err := c.measure(cmd, queries, call)
		if err != nil {
			return fmt.Errorf("measure %s: %w", file, err)
		}
		m.Config, m.Problems = file, append(problems[:len(problems):len(problems)], m.Problems...)
		both[i] = m
	}
	difference := eval.Compare(both[0].Each, both[1].Each)
	if *c.JSON {
		return c.PrintJSON(map[string]any{"a": both[0], "b": both[1], "difference": difference})
	}
	for i, m := range both {
		c.Out.Linef("%s", c.Out.Style(output.Bold, output.Line(string(rune('A'+i))+": "+m.Config)))
		c.report().report(m.Report)
		c.report().misses(m.Misses)
		c.Out.Linef("")
	}
	c.report().comparison(difference)
	return nil
}

// readQueries reads every file. Rows that cannot be measured make it fail: a
// score over the rest would not be the one asked for.
func (c Config) readQueries(files []string) ([]eval.Query, []capability.Problem, error) {
	var queries []eval.Query
	problems := []capability.Problem{}
	var broken []string
	for _, file := range files {
		list, wrong, err := c.readQueryFile(file)
		if err != nil {
			return nil, nil, err
		}
		queries = append(queries, list...)
		for _, p := range wrong {
			if p.Severity == capability.Grave {
				broken = append(broken, p.String())
			} else {
				problems = append(problems, p)
			}
		}
	}
	if len(broken) > 0 {
		return nil, nil, &capability.Error{Kind: capability.Invalid, Op: "read queries", Err: brokenRows(broken)}
	}
	if len(queries) == 0 {
		return nil, nil, &capability.Error{
			Kind: capability.Invalid, Op: "read queries", Target: strings.Join(files, ", "),
			Err: errors.New("the files contain no valid query"), Fix: "write one JSON object per line",
		}
	}
	return queries, problems, nil
}

func brokenRows(broken []string) error {
	shown := strings.Join(broken[:min(maxProblems, len(broken))], "\n")
	if more := len(broken) - maxProblems; more > 0 {
		shown += fmt.Sprintf("\nand %d more", more)
	}
	return fmt.Errorf("%s cannot be measured:\n%s", output.Plural(len(broken), "row"), shown)
}

func (c Config) readQueryFile(file string) ([]eval.Query, []capability.Problem, error) {
	if file == "-" {
		return eval.ReadQueries(c.In, "standard input")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read queries: %w; --queries names a .jsonl file", err)
	}
	defer func(f io.Closer) { _ = f.Close() }(f) // it was only read
	return eval.ReadQueries(f, file)
}

// A measured is the report of one configuration.
type measured struct {
	Config string `json:"config,omitempty"`
	eval.Report
	Capabilities int             `json:"capabilities"` // that could be found
	Misses       []eval.PerQuery `json:"misses,omitempty"`
	Baseline     *baseline       `json:"baseline,omitempty"`
}

// A baseline is plain BM25 on the same queries, and how Ken (B) differs from it
// (A).
type baseline struct {
	eval.Report
	Difference eval.Comparison `json:"difference"`
}

// measure opens Ken as configured and asks it the queries. The time to the
// first answer counts from before anything is read to after the first answer:
// configuration, catalog (from its cache where there is one), index.
func (c Config) measure(cmd *cobra.Command, queries []eval.Query, call request) (measured, error) {
	var m measured
	start := time.Now()
	err := c.With(cmd, func(ctx context.Context, a App) error {
		a.Vectors.Wait(ctx)
		if _, err := a.Vectors.Check(ctx); err != nil {
			fmt.Fprintln(c.Err, "ken: words alone are measured:", err)
		}
		find := a.Ranker()
		if _, err := find(ctx, queries[0]); err != nil {
			return err
		}
		ready := time.Since(start)
		corpus, known := findable(a)
		options := eval.Options{Known: func(id string) bool { return known[id] }}
		var err error
		if m.Report, err = eval.Run(ctx, find, queries, options); err != nil {
			return err
		}
		m.IndexMS, m.RSSMB = eval.Mean(ready.Seconds()*1e3), eval.ResidentMB()
		m.Capabilities, m.Misses = len(known), m.Report.Misses(call.misses)
		if call.baseline {
			plain, err := eval.Run(ctx, eval.PlainBM25(corpus), queries, options)
			if err != nil {
				return err
			}
			m.Baseline = &baseline{plain, eval.Compare(plain.Each, m.Each)}
		}
		return nil
	})
	return m, err
}

// findable returns what the person who runs Ken could be shown.
func findable(a App) ([]*capability.Capability, map[string]bool) {
	var corpus []*capability.Capability
	known := map[string]bool{}
	for e := range a.View().All() {
		if e.State == catalog.Active {
			corpus, known[string(e.ID)] = append(corpus, e.Capability), true
		}
	}
	return corpus, known
}
