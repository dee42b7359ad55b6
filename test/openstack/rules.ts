import { sampled } from '../expect/sampled.ts';

/**
 * Rules of the contract by what they are about. All of them, and others that are not here, are tried in
 * test/integration/openstack-contract.test.ts, on a simulated cloud.
 */
const RULES: Readonly<Record<string, readonly string[]>> = {
  creations: ['capacity', 'creation-repeated'],
  'machines that are looked up': [
    'status-by-name-and-by-id',
    'status-of-another-uid',
    'status-of-another-cluster',
    'status-by-a-foreign-id',
  ],
  deletions: [
    'deletion-repeated',
    'deletions-at-once',
    'deletion-of-another-uid',
    'deletion-by-a-foreign-id',
    'deletion-without-machine',
    'time-of-a-deletion',
  ],
  lists: ['list', 'list-of-another-cluster', 'list-of-another-namespace', 'list-of-another-class'],
  // Of these nothing is made.
  'bad-class': ['bad-class'],
  'bad-secret': ['bad-secret'],
  secrets: ['secrets'],
};

/** Those that a run tries with real services. */
export function sampledRules(): readonly string[] {
  const rows = Object.entries(RULES).flatMap(([kind, names]) => names.map((name) => ({ kind, name })));
  const table = { name: 'openstack: rules of the contract', rows };
  return sampled({ ...table, nameOf: ({ name }) => name, kindsOf: ({ kind }) => [kind] }).map(({ name }) => name);
}
