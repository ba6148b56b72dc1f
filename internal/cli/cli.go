// Package cli is Ken's command line: it parses, prints, and turns errors into
// exit statuses. What the commands do lies below, behind the door.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/config"
	"ken/internal/run/sandbox"
	"ken/internal/spelling"
	"ken/internal/untrusted"
)

// Exit statuses, which scripts rely on.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitRefused  = 3
	exitWaiting  = 4
	exitTimedOut = 124

	exitInterrupted = 130
)

// Main runs the program and gives its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if err := sandbox.Shield(); err != nil {
		fmt.Fprintf(stderr, "ken: %v; other processes of this user can read its secrets\n", err)
	}
	if os.Getenv("GOGC") == "" {
		collectLate(debug.SetGCPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer endAtOnce()()
	c := &command{out: newPrinter(stdout), err: stderr, in: stdin}
	root := c.root()
	root.SetArgs(negatives(args))
	root.SetIn(stdin)
	root.SetOut(c.out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil && c.out.failed != nil && !errors.Is(c.out.failed, syscall.EPIPE) {
		err = fmt.Errorf("write the output: %w", c.out.failed)
	}
	var told toldError
	if err != nil && !errors.Is(err, errSilent) && !errors.As(err, &told) {
		c.explain(err)
	}
	return status(err)
}

// negatives moves a negative number that is the value of config set behind "--",
// so that it is not read as a flag.
func negatives(args []string) []string {
	verb := slices.Index(args, "set")
	if verb < 1 || !slices.Contains(args[:verb], "config") || slices.Contains(args, "--") {
		return args
	}
	for i := verb + 1; i < len(args); i++ {
		if a := args[i]; len(a) > 1 && a[0] == '-' && (a[1] == '.' || a[1] >= '0' && a[1] <= '9') {
			return append(slices.Delete(slices.Clone(args), i, i+1), "--", a)
		}
	}
	return args
}

// endAtOnce makes a second signal end the program at once, as if it were not
// caught, until the returned function is called. It listens from the start, so
// that two signals in quick succession are both seen. If a shell made this
// background program ignore interrupts, the exit status is the one a shell
// would report.
func endAtOnce() (stop func()) {
	asked := make(chan os.Signal, 2)
	done := make(chan struct{})
	ignored := signal.Ignored(os.Interrupt)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case s := <-asked:
				if n == 0 {
					continue // the context handles the first signal
				}
				signal.Reset(os.Interrupt, syscall.SIGTERM)
				self, err := os.FindProcess(os.Getpid())
				if err != nil || s == os.Interrupt && ignored || self.Signal(s) != nil {
					os.Exit(exitInterrupted)
				}
			}
		}
	}()
	return func() {
		signal.Stop(asked)
		close(done)
	}
}

// explain says what went wrong: in words, and with --json as the one document
// that was asked for.
func (c *command) explain(err error) {
	fmt.Fprintln(c.err, "ken:", untrusted.Terminal(err.Error()))
	if !c.json {
		return
	}
	failure := map[string]any{"message": err.Error(), "status": status(err), "kind": capability.KindOf(err).String()}
	if status(err) == exitUsage {
		failure["kind"] = "usage"
	}
	var refused *config.Error
	if errors.As(err, &refused) {
		failure["kind"], failure["problems"] = "invalid", refused.Problems
	}
	_ = c.printJSON(map[string]any{"error": failure}) // there is nowhere else to say it
}

// errSilent ends a command with status 1 when all was said already.
var errSilent = errors.New("see above")

// A usageError is a mistake in how the program was called.
type usageError struct{ error }

func status(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errSilent):
		return exitFailed
	}
	switch capability.KindOf(err) {
	case capability.Denied:
		return exitRefused
	case capability.Unapproved, capability.InputNeeded:
		return exitWaiting
	case capability.Timeout:
		return exitTimedOut
	}
	return exitFailed
}

// A command holds what all commands share: where to print, and the flags that
// work on every one.
type command struct {
	out *printer
	err io.Writer
	in  io.Reader

	progress progress

	configFile string
	catalogs   []string
	json       bool
	serving    bool // servers may appear while it runs
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ken",
		Short: "Ken knows what an AI agent can do, and shows it the few things that matter",
		Long: "Ken keeps one live catalog of every capability an agent has (tools, skills, cards,\n" +
			"commands, channels, APIs) and finds the few that matter for a message.",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&c.configFile, "config", "", "read this `file` instead of the usual ken.yaml")
	flags.StringArrayVar(&c.catalogs, "catalog", nil, "read only this `path`, a directory or a file of capabilities (repeatable)")
	flags.BoolVar(&c.json, "json", false, "print one JSON document")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.Args = args(func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 {
			return nil
		}
		if slices.Contains(c.catalogs, "catalog") {
			return fmt.Errorf("there is no command %q; --catalog took the word catalog as its path", given[0])
		}
		return fmt.Errorf("there is no command %q%s", given[0], meant(cmd, given[0]))
	})
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.Version = app.Version()
	root.SetVersionTemplate("ken {{.Version}}\n")
	root.AddCommand(
		c.chatCommand(), c.catalogCommand(), c.discoverCommand(), c.runCommand(), c.approveCommand(), c.auditCommand(), c.extensionCommand(), c.policyCommand(), c.secretCommand(), c.tokenCommand(),
		c.connectCommand(), c.disconnectCommand(), c.mcpCommand(), c.loginCommand(), c.evalCommand(), c.statsCommand(), c.serveCommand(), c.configCommand(), c.initCommand(), c.doctorCommand(), c.versionCommand(),
	)
	return root
}

// args makes cobra's argument checks usage errors.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := check(cmd, given); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		}
		return nil
	}
}

// group is a command that only holds others.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, given []string) error {
			if len(given) == 0 {
				return usageError{fmt.Errorf("%s needs one of its commands; see %s --help", cmd.CommandPath(), cmd.CommandPath())}
			}
			return usageError{fmt.Errorf("%s has no command %q%s; see %s --help", cmd.CommandPath(), given[0], meant(cmd, given[0]), cmd.CommandPath())}
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(subs...)
	return cmd
}

// meant guesses the command behind a word.
func meant(cmd *cobra.Command, word string) string {
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	if near := spelling.Nearest(word, names); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// open builds the program and loads the catalog.
func (c *command) open(ctx context.Context) (*app.App, error) {
	return app.Open(ctx, app.Config{
		ConfigFile: c.configFile, Catalogs: c.catalogs, Log: slog.New(slog.NewTextHandler(c.err, nil)), Observe: c.progress.observe,
		Servers: !c.serving,
	})
}

// with runs a command that needs the program.
func (c *command) with(run func(ctx context.Context, a *app.App, given []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, given []string) error {
		a, err := c.open(cmd.Context())
		if err != nil {
			return err
		}
		c.mention(cmd, a)
		return errors.Join(run(cmd.Context(), a, given), a.Close())
	}
}

// mention says on the side that something is wrong with the catalog, where the
// command itself does not.
func (c *command) mention(cmd *cobra.Command, a *app.App) {
	if cmd.Name() == "lint" || cmd.Name() == "doctor" || c.json {
		return
	}
	if n := a.CatalogErrors(); n > 0 {
		fmt.Fprintf(c.err, "ken: %s in the catalog; see ken catalog lint\n", plural(n, "error"))
	}
}

// printJSON prints one document and nothing else.
func (c *command) printJSON(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
