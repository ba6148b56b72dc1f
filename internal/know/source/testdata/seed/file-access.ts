// Only load from repo root
const repoRoot = path.resolve(__dirname, "../../..");
const capabilityPath = path.join(repoRoot, relativePath);

// Validate path doesn't escape
if (!capabilityPath.startsWith(repoRoot)) {
  throw new Error("Path traversal detected");
}
