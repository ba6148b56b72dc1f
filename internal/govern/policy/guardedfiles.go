package policy

// protectedFiles govern Ken or an agent, or are run by other programs.
var protectedFiles = []string{
	"ken.yaml", "tool-access.json", "AGENTS.md", "SKILL.md", "CAPABILITY.yaml", "CAPABILITY.yml", "commands.yaml", "manifest.json",
	"CLAUDE.md", "GEMINI.md", "SOUL.md", "soul.json", "user_profile.json", "system_prompt.md", ".kenignore", ".mcp.json", ".gitconfig", ".gitattributes", ".gitmodules", "authorized_keys",
	".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".envrc",
	"**/.ken/**", "**/.git/**", ".git", "**/.claude/**", "**/.cursor/**", "**/.vscode/**", "**/.idea/**", "**/.github/workflows/**", "**/.agents/**",
	"**/.wunderland/**", "**/.agentos/**", "**/.openclaw/**", "**/.orchestration/**", "**/docs/capabilities/**", "*.cedar",
}

// secretFiles hold what must not leave.
var secretFiles = []string{
	".env", ".env.*", ".netrc", ".pgpass", "id_rsa", "id_ed25519", "id_ecdsa", "*.pem", "*.key", "secrets.age", "credentials.json",
	"**/.ssh/**", "**/.aws/**", "**/.gnupg/**", "**/.kube/**", "/proc/*/environ",
}
