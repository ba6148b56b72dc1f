// Addresses of the page itself.
import { inPath } from "./api";

export const toCapability = (id: string, suffix = "") => "/catalog/" + inPath(id) + suffix;
export const toSession = (id: string) => "/chat/" + encodeURIComponent(id);
