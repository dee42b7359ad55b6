import { describe, expect, test } from '@jest/globals';

import { fillUserData, requiresToken } from './user-data.ts';

const encode = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));
const fill = (text: string, token?: string): string =>
  Buffer.from(fillUserData(encode(text), { machineName: 'm-1', ...(token !== undefined && { token }) })).toString();

describe('user data', () => {
  test.each([
    { text: 'token: <<BOOTSTRAP_TOKEN>>', filled: 'token: abc.def' },
    { text: '<<BOOTSTRAP_TOKEN>> <<BOOTSTRAP_TOKEN>>', filled: 'abc.def abc.def' },
    { text: 'url?t=%3C%3CBOOTSTRAP_TOKEN%3E%3E', filled: 'url?t=abc.def' },
    { text: '<<BOOTSTRAP_TOKEN>> %3C%3CBOOTSTRAP_TOKEN%3E%3E', filled: 'abc.def %3C%3CBOOTSTRAP_TOKEN%3E%3E' },
    { text: 'name: <<MACHINE_NAME>>', filled: 'name: m-1' },
    { text: 'url?n=%3C%3CMACHINE_NAME%3E%3E', filled: 'url?n=m-1' },
    { text: 'nothing', filled: 'nothing' },
    { text: 'ünïcode <<MACHINE_NAME>>', filled: 'ünïcode m-1' },
  ])('"$text" becomes "$filled"', ({ text, filled }) => {
    expect(fill(text, 'abc.def')).toBe(filled);
  });

  test('keeps the place of the token when there is none', () => {
    expect(fill('<<BOOTSTRAP_TOKEN>>')).toBe('<<BOOTSTRAP_TOKEN>>');
  });

  test('keeps bytes that are no text', () => {
    const bytes = Uint8Array.from([0x1f, 0x8b, 0xff, 0x00, 0xc3, 0x28]);

    expect(fillUserData(bytes, { machineName: 'm-1' })).toEqual(bytes);
  });

  test('takes the value literally', () => {
    expect(fill('<<BOOTSTRAP_TOKEN>>', '$&.$1')).toBe('$&.$1');
  });

  test.each([
    { text: '<<BOOTSTRAP_TOKEN>>', wants: true },
    { text: '%3C%3CBOOTSTRAP_TOKEN%3E%3E', wants: true },
    { text: '<<MACHINE_NAME>>', wants: false },
  ])('"$text" has a place for a token: $wants', ({ text, wants }) => {
    expect(requiresToken(encode(text))).toBe(wants);
  });
});
