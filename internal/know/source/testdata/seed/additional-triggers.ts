triggers: {
  keywords: string[];
  sessionTypes: string[];
  confidenceThreshold: number;
  // NEW: Additional trigger types
  timeOfDay?: string[];        // e.g., ["morning", "evening"]
  userTier?: string[];         // e.g., ["premium", "enterprise"]
  environmentType?: string[];  // e.g., ["development", "production"]
}
