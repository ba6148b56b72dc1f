import * as assert from "node:assert/strict";
import test from "node:test";
import { naming } from "./naming";

const line = 'import { drawn as drawn_ } from "/src/lib/odd.ts";';

test("every value that is drawn is named", () => {
  for (const [source, want] of [
    ["<p>{a}</p>", "<p>{drawn_(a)}</p>"],
    ["{#each l as x}{#if x}<b>{(x as T).y}</b>{:else}{x + 1}{/if}{/each}", "{#each l as x}{#if x}<b>{drawn_((x as T).y)}</b>{:else}{drawn_(x + 1)}{/if}{/each}"],
    ["{#snippet s(t)}{t}{/snippet}{@render s(a)}", "{#snippet s(t)}{drawn_(t)}{/snippet}{@render s(a)}"],
    ["{#await p then v}{v}{:catch e}{e.message}{/await}", "{#await p then v}{drawn_(v)}{:catch e}{drawn_(e.message)}{/await}"],
    ["<C {a} title={b}><i>{c}</i></C>", "<C {a} title={b}><i>{drawn_(c)}</i></C>"],
    ['<a href={a} title={b} aria-label="x {c}" class={d}>{@const e = 1}{e}</a>', '<a href={a} title={drawn_(b)} aria-label="x {drawn_(c)}" class={d}>{@const e = 1}{drawn_(e)}</a>'],
    ["<img {alt} {src} />{x}", "<img alt={drawn_(alt)} {src} />{drawn_(x)}"],
    ["<svelte:element this={a} title={t}>{b}</svelte:element>", "<svelte:element this={a} title={drawn_(t)}>{drawn_(b)}</svelte:element>"],
  ] as const) {
    const head = '<script lang="ts">let a = 1;</script>';
    assert.equal(naming(head + source), head.replace(">let", ">" + line + "let") + want);
  }
});

test("a component without a script gets one, and what is constant or a field is left alone", () => {
  assert.equal(naming("<p>{x}</p>"), `<script lang="ts">${line}</script><p>{drawn_(x)}</p>`);
  for (const source of ["<p>text</p>", '{" · "}', '<script lang="ts">let a = $state("");</script><textarea bind:value={a}></textarea><input value={a} onclick={() => a} class:a />', "<textarea>{a}</textarea>"]) assert.equal(naming(source), source);
});
