// As much of Node as tests use: the page itself knows nothing of it.
declare module "node:test" {
  export default function test(name: string, run: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  export function equal(got: unknown, want: unknown, message?: string): void;
  export function deepEqual(got: unknown, want: unknown, message?: string): void;
  export function ok(value: unknown, message?: string): asserts value;
}
