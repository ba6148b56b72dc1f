package format

// ExtensionManifest is the file that makes a folder an extension package.
const ExtensionManifest = "manifest.json"

// SkillMarkers returns the names of the file that makes a folder a skill.
func SkillMarkers() []string { return []string{"SKILL.md", "skill.md", "Skill.md"} }
