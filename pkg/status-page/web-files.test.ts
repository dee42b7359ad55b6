import { expect, test } from '@jest/globals';

import { MAIN_SCRIPT, webFiles } from './web-files.ts';

const FILES = webFiles();

test('scripts of the page import only what is served beside them', () => {
  const imports = [...FILES].flatMap(([file, { body }]) =>
    file.endsWith('.ts')
      ? [...body.matchAll(/from '([^']+)'/g)].map(([, to = '']) => new URL(to, `http://x/${file}`).pathname.slice(1))
      : [],
  );

  expect(imports.filter((file) => !FILES.has(file))).toEqual([]);
  const scripts = [...FILES.keys()].filter((file) => file.endsWith('.ts'));
  expect(new Set([MAIN_SCRIPT, ...imports])).toEqual(new Set(scripts));
});

test('the page loads only what is served beside it, and has neither scripts nor styles of its own', () => {
  const page = FILES.get('status-page/web/index.html')?.body ?? '';
  const loaded = [...page.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, file = '']) => file);

  expect(loaded.filter((file) => !FILES.has(file))).toEqual([]);
  expect(loaded).toContain(MAIN_SCRIPT);
  expect(page).not.toMatch(/<style|style=|\son[a-z]+=|<script>/);
  const others = [...FILES.values()].filter(({ body }) => /https?:\/\/(?!www\.w3\.org\/2000\/svg)/.test(body));
  expect(others).toEqual([]);
});
