import { readFileSync } from 'node:fs';
import path from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { encoded } from '../../test/drivers/requests.ts';
import { repeatsSecrets, withoutSecrets } from './without-secrets.ts';

/** Of drivers in Go, too. */
const TABLE = path.resolve(import.meta.dirname, '../../packages/mcm-provider/testdata/secrets.json');
const { secret, cases } = JSON.parse(readFileSync(TABLE, 'utf8')) as {
  secret: Record<string, string>;
  cases: { what: string; text: string; want: string }[];
};
const secretData = encoded(secret);
const TOKEN = 'abcdef.0123456789abcdef';

describe('a text of a provider', () => {
  test.each(cases)('that repeats $what does not show it', ({ text, want }) => {
    expect(withoutSecrets(text, secretData)).toBe(want);
  });

  test('that is far too long repeats a Secret at its end, too', () => {
    expect(repeatsSecrets(`${'x'.repeat(100_000)} ${TOKEN}`, secretData)).toBe(true);
    expect(repeatsSecrets('x'.repeat(100_000), secretData)).toBe(false);
  });

  test('that is far too long is searched no longer than is kept of it', () => {
    const text = withoutSecrets(`${'x'.repeat(1_000_000)} ${TOKEN}`, secretData);

    expect(text.length).toBeLessThan(20_000);
    expect(text).not.toContain(TOKEN);
    expect(text).toMatch(/\[redacted\]$/);
  });
});
