import { Box, render, Text, useInput } from 'ink';
import { createElement } from 'react';

import type { Key } from './keys.ts';

/** A terminal of which the whole screen is drawn. */
export interface LiveScreen {
  draw(lines: readonly string[]): void;
  /** Leaves the terminal as it was before. */
  close(): Promise<void>;
}

/**
 * Takes the screen of the terminal until it is closed; also when the process ends otherwise, the terminal is as it was. Keys are reported where
 * somebody can press any.
 */
export function openScreen(onKey: (key: Key) => void): LiveScreen {
  const hasKeys = process.stdin.isTTY;

  function View({ lines }: { readonly lines: readonly string[] }): ReturnType<typeof createElement> {
    useInput(
      (input, pressed) => {
        for (const key of keysOf(input, pressed)) onKey(key);
      },
      { isActive: hasKeys },
    );
    const rows = lines.map((line, i) => createElement(Text, { key: i, wrap: 'truncate' }, line === '' ? ' ' : line));
    return createElement(Box, { flexDirection: 'column' }, rows);
  }

  const app = render(createElement(View, { lines: [] }), {
    alternateScreen: true,
    incrementalRendering: true,
    interactive: true,
    exitOnCtrlC: false,
    patchConsole: false,
  });
  return {
    draw: (lines) => app.rerender(createElement(View, { lines })),
    async close() {
      app.unmount();
      await app.waitUntilExit();
    },
  };
}

const NAMES = [
  ['upArrow', 'up'],
  ['downArrow', 'down'],
  ['pageUp', 'pageup'],
  ['pageDown', 'pagedown'],
  ['home', 'home'],
  ['end', 'end'],
  ['return', 'enter'],
  ['escape', 'escape'],
  ['backspace', 'backspace'],
  ['delete', 'backspace'],
] as const;

type Pressed = Readonly<Record<(typeof NAMES)[number][0] | 'ctrl' | 'meta', boolean>>;

/** What is typed or pasted fast arrives at once. */
function keysOf(input: string, pressed: Pressed): readonly Key[] {
  const [, name] = NAMES.find(([flag]) => pressed[flag]) ?? [];
  if (name !== undefined) return [{ name }];
  if (pressed.ctrl) return input === 'c' ? [{ name: 'interrupt' }] : [];
  return pressed.meta ? [] : Array.from(input).flatMap((character) => CONTROLS[character] ?? textKey(character));
}

const CONTROLS: Readonly<Record<string, Key>> = {
  '\r': { name: 'enter' },
  '\n': { name: 'enter' },
  '\u007F': { name: 'backspace' },
  '\b': { name: 'backspace' },
  '\u0003': { name: 'interrupt' },
};

function textKey(character: string): readonly Key[] {
  return /\p{Cc}/u.test(character) ? [] : [{ name: 'text', text: character }];
}
