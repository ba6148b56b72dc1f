function validateFrontmatter(metadata: any): void {
  // Token budget limits
  if (metadata.token_budget > 2000) {
    throw new Error("Token budget exceeds maximum");
  }
  
  // Type validation
  if (!Array.isArray(metadata.triggers?.keywords)) {
    throw new Error("Invalid triggers.keywords");
  }
  
  // Priority range
  if (metadata.priority < 0 || metadata.priority > 100) {
    throw new Error("Priority out of range");
  }
}
