package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ken/internal/cli/output"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/spelling"
)

// addCommands adds the commands in groups, those to begin with first.
func addCommands(root *cobra.Command, c *environment) {
	add := func(id, title string, list ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: id, Title: title})
		for _, cmd := range list {
			cmd.GroupID = id
		}
		root.AddCommand(list...)
	}
	add("start", "Start here:", newDemo(c), newServe(c), newChat(c), newConnect(c), newAdd(c), newInit(c), newDoctor(c))
	add("find", "Find and run capabilities:", append(newJobs(c), newCatalog(c), newDiscover(c), newRun(c))...)
	add("govern", "Decide and look back:", newApprove(c), newAudit(c), newExtension(c), newPolicy(c), newStats(c))
	add("set", "Set up:", newConfig(c), newSecret(c), newToken(c), newLogin(c), newRemove(c), newDisconnect(c), newMCP(c))
	add("keep", "Back up:", newBackup(c)...)
	add("other", "Other:", newEval(c), newMan(c), newVersion(c))
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
}

// demoStep suggests the demo.
const demoStep = "ken demo shows Ken at work in a minute; nothing has to be set up."

// nextStep suggests what to do next with this installation.
func (c *environment) nextStep() string {
	return "Next: " + strings.Join(c.nextSteps(), "\n      ")
}

// nextSteps suggests what to do next, the best first.
func (c *environment) nextSteps() []string {
	places, err := dirs.Here()
	if err != nil {
		return []string{"ken doctor says what is wrong with this installation."}
	}
	switch settings, err := config.Load(places, c.configFile); {
	case err != nil:
		return []string{"ken.yaml cannot be used; ken config check says why."}
	case settings.Model == "" && len(settings.MCP.Servers) == 0:
		return []string{
			demoStep,
			"ken serve opens the page, which helps you to choose a model.",
			"ken connect claude puts Ken before the MCP servers of a client (also codex, cursor, vscode, …).",
		}
	case settings.Model == "":
		return []string{"ken config set model PROVIDER/NAME names a model for ken chat, as in ollama/qwen3."}
	default:
		return []string{"ken chat talks with " + output.Line(settings.Model) + "; ken serve does so in the browser."}
	}
}

// seeHelp returns a mistake in how a command was called, and names its help.
func seeHelp(cmd *cobra.Command, mistake string) error {
	if strings.HasSuffix(mistake, "?") {
		return fmt.Errorf("%s See %s --help", mistake, cmd.CommandPath())
	}
	return fmt.Errorf("%s; see %s --help", mistake, cmd.CommandPath())
}

// flagFault says what is wrong with a flag, and names the one that was probably
// meant.
func flagFault(cmd *cobra.Command, err error) string {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if e.GetSpecifiedShortnames() != "" {
			return fmt.Sprintf("%s has no flag -%s", cmd.CommandPath(), output.Line(e.GetSpecifiedName()))
		}
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		text := fmt.Sprintf("%s has no flag --%s", cmd.CommandPath(), output.Line(e.GetSpecifiedName()))
		if near := spelling.Nearest(e.GetSpecifiedName(), known); near != "" {
			text += "; did you mean --" + near + "?"
		}
		return text
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		what, _ := pflag.UnquoteUsage(e.GetFlag())
		return fmt.Sprintf("--%s needs a value (%s)", e.GetFlag().Name, what)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		what, _ := pflag.UnquoteUsage(e.GetFlag())
		return fmt.Sprintf("--%s cannot be %q; write a value of this kind: %s", e.GetFlag().Name, e.GetValue(), what)
	}
	return err.Error()
}
