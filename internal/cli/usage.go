package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/cli/output"
	"ken/internal/config"
	"ken/internal/connect"
	"ken/internal/dirs"
	"ken/internal/secret"
	"ken/internal/setup"
	"ken/internal/talk/opener"
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
	add("start", "Start here:", newDemo(c), newServe(c), newModel(c), newChat(c), newConnect(c), newAdd(c), newInit(c), newDoctor(c))
	add("find", "Find and run capabilities:", append(newJobs(c), newCatalog(c), newDiscover(c), newRun(c))...)
	add("govern", "Decide and look back:", newApprove(c), newAudit(c), newExtension(c), newPolicy(c), newStats(c))
	add("set", "Set up:", newConfig(c), newSecret(c), newToken(c), newLogin(c), newRemove(c), newDisconnect(c), newMCP(c))
	add("keep", "Back up:", newBackup(c)...)
	add("other", "Other:", newEval(c), newMan(c), newVersion(c))
	root.SetHelpCommand(newHelp(root))
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
}

// demoStep suggests the demo.
const demoStep = "ken demo shows Ken at work in a minute; nothing has to be set up."

// nextStep suggests what to do next with this installation.
func (c *environment) nextStep(ctx context.Context) string {
	return "Next: " + strings.Join(c.nextSteps(ctx), "\n      ")
}

// nextSteps suggests what to do next, the best first, by what is on this machine.
func (c *environment) nextSteps(ctx context.Context) []string {
	places, err := dirs.Here()
	if err != nil {
		return []string{"ken doctor says what is wrong with this installation."}
	}
	settings, err := config.Load(places, c.configFile)
	if err != nil {
		return []string{"ken.yaml cannot be used; ken config check says why."}
	}
	secrets := secret.New(secret.Config{Dir: places.Home, Environ: os.Environ()})
	models := opener.New(opener.Config{
		StateDir: places.State, Settings: func() *config.Config { return &settings }, Secrets: secrets, Hold: func(...string) {}, Log: slog.New(slog.DiscardHandler),
	})
	clients := connect.NewConnector(connect.ConnectorConfig{UserHome: places.UserHome, Getenv: os.Getenv, Secrets: secrets})
	found := setup.Find(ctx, setup.Config{Model: settings.Model, UserHome: places.UserHome, Workspace: places.Workspace, Choices: models.Choices, Plan: clients.Plan})
	steps := found.Steps()
	if settings.Model == "" {
		steps = append([]string{demoStep}, steps...)
	}
	for i := range steps {
		steps[i] = output.Line(steps[i])
	}
	return steps
}

// seeHelp returns a mistake in how a command was called, and names its help.
func seeHelp(cmd *cobra.Command, mistake string) error {
	if strings.HasSuffix(mistake, "?") {
		return fmt.Errorf("%s See %s --help", mistake, cmd.CommandPath())
	}
	return fmt.Errorf("%s; see %s --help", mistake, cmd.CommandPath())
}
