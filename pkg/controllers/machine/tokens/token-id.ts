import { createHash } from 'node:crypto';

import { charactersOf, type Random } from '../../../base/random/random.ts';

const BASE = 36n;
const LENGTH = 6;
const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';

/**
 * The `attempt`-th choice of a bootstrap token id for a Machine: six characters of base 36 over sha256(uid, attempt).
 * Every process finds the same ids, so that a token outlives restarts without being recorded anywhere.
 */
export function tokenID(machineUID: string, attempt: number): string {
  const digest = createHash('sha256').update(`${machineUID}/${attempt}`).digest('hex');
  return (BigInt(`0x${digest}`) % BASE ** BigInt(LENGTH)).toString(Number(BASE)).padStart(LENGTH, '0');
}

/**
 * The id that the original derives from the Machine's name: only three of its random characters count, so that Machines may
 * share one. Undefined for names too short to have one.
 */
export function legacyTokenID(machineName: string): string | undefined {
  const bytes = Buffer.from(machineName);
  return bytes.length < 5 ? undefined : bytes.subarray(-5).toString('hex').slice(0, LENGTH);
}

/** The secret half of a token: 16 characters, from a cryptographic source but in simulations. */
export function newTokenSecret(random: Random): string {
  return charactersOf(random, ALPHABET, 16);
}

export function tokenSecretName(id: string): string {
  return `bootstrap-token-${id}`;
}
