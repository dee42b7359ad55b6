import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { legacyTokenID, newTokenSecret, tokenID, tokenSecretName } from './token-id.ts';
import { secureRandom } from '../../../base/random/random.ts';

describe('bootstrap token ids', () => {
  test('are valid, stable, and different for each attempt', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.nat(10), (uid, attempt) => {
        expect(tokenID(uid, attempt)).toMatch(/^[a-z0-9]{6}$/);
        expect(tokenID(uid, attempt)).toBe(tokenID(uid, attempt));
        expect(tokenID(uid, attempt)).not.toBe(tokenID(uid, attempt + 1));
      }),
    );
  });

  test.each([
    { name: 'shoot--a--b-z1-6f9c8-x7k2p', id: '78376b' },
    { name: 'abcde', id: '616263' },
    { name: 'abcd', id: undefined },
  ])('of the original for $name is $id', ({ name, id }) => {
    expect(legacyTokenID(name)).toBe(id);
  });

  test('go with a secret of 16 characters that nobody can guess', () => {
    const secrets = new Set(Array.from({ length: 100 }, () => newTokenSecret(secureRandom)));

    expect(secrets.size).toBe(100);
    for (const secret of secrets) expect(secret).toMatch(/^[a-z0-9]{16}$/);
    expect(tokenSecretName('abc123')).toBe('bootstrap-token-abc123');
  });
});
