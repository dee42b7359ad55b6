import { machine } from './objects.ts';
import { del, get, type Given, merge, OTHER_UID, post, put, type Row, rvOf, uidOf } from './row.ts';

/** Creation, reading, updates and their preconditions. */
export const METADATA_ROWS: readonly Row[] = [
  get('an object that does not exist', 'machines/none'),
  get('a subresource of one that does not exist', 'machines/none/status'),
  merge('a patch of one that does not exist', 'machines/none', { metadata: { labels: { a: 'b' } } }),
  del('a DELETE of one that does not exist', 'machines/none'),
  get('a kind that is not served', 'nothings/none'),
  get('a subresource that is not served', 'machines/none/log'),
  post('a Machine', 'machines', machine('a', {}, { labels: { pool: 'a' }, annotations: { note: 'x' } }), { save: 'a' }),
  post('the same again', 'machines', machine('a')),
  get('a Machine as stored', 'machines/a', { save: 'a' }),
  get('its status subresource', 'machines/a/status'),
  post('with a status, which is dropped', 'machines', machine('b', { status: { node: 'n' } }), { save: 'b' }),
  post(
    'with members that the server sets',
    'machines',
    machine('c', {}, { uid: OTHER_UID, generation: 7, creationTimestamp: '2020-01-01T00:00:00Z' }),
  ),
  post(
    'with a deletionTimestamp, which is dropped',
    'machines',
    machine('d', {}, { deletionTimestamp: '2020-01-01T00:00:00Z' }),
  ),
  post('with a resourceVersion', 'machines', machine('e', {}, { resourceVersion: '5' })),
  post('without a name', 'machines', { ...machine('x'), metadata: {} }),
  post('with a generateName', 'machines', { ...machine('x'), metadata: { generateName: 'pool-' } }),
  post(
    'of another kind',
    'machines',
    { ...machine('x'), kind: 'MachineSet' },
    { kept: { what: 'message', why: 'names of Go types' } },
  ),
  post(
    'of another version',
    'machines',
    { ...machine('x'), apiVersion: 'machine.sapcloud.io/v1' },
    { kept: { what: 'message', why: 'names of Go types' } },
  ),
  post('for another namespace', 'machines', machine('x', {}, { namespace: 'elsewhere' })),
  post('with a name in capitals', 'machines', machine('UPPER'), {
    kept: { what: 'message', why: 'a lesson about DNS names' },
  }),
  post('with a label that is none', 'machines', machine('x', {}, { labels: { a: 'no spaces' } }), {
    kept: { what: 'message', why: 'a lesson about labels' },
  }),
  post('with a label that is too long', 'machines', machine('x', {}, { labels: { a: 'x'.repeat(64) } })),
  post('with a key that is none', 'machines', machine('x', {}, { labels: { 'a/b/c': 'd' } }), {
    kept: { what: 'message', why: 'a lesson about keys' },
  }),
  post('with a finalizer that is none', 'machines', machine('x', {}, { finalizers: ['no good'] }), {
    kept: { what: 'message', why: 'a lesson about keys' },
  }),
  post(
    'with empty lists and maps',
    'machines',
    machine('empty', {}, { labels: {}, annotations: {}, finalizers: [], ownerReferences: [] }),
  ),

  merge('labels', 'machines/a', { metadata: { labels: { tier: '1' } } }, { save: 'a' }),
  merge('labels that it has', 'machines/a', { metadata: { labels: { tier: '1' } } }, { save: 'a' }),
  merge('a label that goes', 'machines/a', { metadata: { labels: { tier: null } } }, { save: 'a' }),
  merge('the last label', 'machines/a', { metadata: { labels: null } }, { save: 'a' }),
  merge('a field of the spec', 'machines/a', { spec: { drainTimeout: '5m' } }, { save: 'a' }),
  merge('the same field', 'machines/a', { spec: { drainTimeout: '5m' } }, { save: 'a' }),
  merge('an unknown field', 'machines/a', { spec: { unknown: 1 } }, { save: 'a' }),
  merge('an unknown member of metadata', 'machines/a', { metadata: { unknown: 1 } }, { save: 'a' }),
  merge('with its uid', 'machines/a', (given: Given) => ({
    metadata: { uid: uidOf(given, 'a'), annotations: { n: '1' } },
  })),
  merge('with another uid', 'machines/a', { metadata: { uid: OTHER_UID, annotations: { n: '2' } } }),
  merge('with an old resourceVersion', 'machines/a', (given: Given) => ({
    metadata: { resourceVersion: rvOf(given, 'a'), annotations: { n: '3' } },
  })),
  get('before a write with the present resourceVersion', 'machines/a', { save: 'a' }),
  merge('with the present resourceVersion', 'machines/a', (given: Given) => ({
    metadata: { resourceVersion: rvOf(given, 'a'), annotations: { n: '3' } },
  })),
  merge('with another name', 'machines/a', { metadata: { name: 'other' } }),
  merge('with another namespace', 'machines/a', { metadata: { namespace: 'other' } }),
  merge('with another generation', 'machines/a', { metadata: { generation: 99 } }),
  merge('with another creationTimestamp', 'machines/a', { metadata: { creationTimestamp: '2020-01-01T00:00:00Z' } }),
  merge('with a deletionTimestamp', 'machines/a', { metadata: { deletionTimestamp: '2020-01-01T00:00:00Z' } }),
  merge(
    'with a list where an object is',
    'machines/a',
    { spec: [] },
    { kept: { what: 'message', why: 'names of Go types' } },
  ),
  merge(
    'with labels that are a list',
    'machines/a',
    { metadata: { labels: ['a'] } },
    { kept: { what: 'message', why: 'names of Go types' } },
  ),

  merge(
    'the status by its subresource',
    'machines/a/status',
    { status: { currentStatus: { phase: 'Running' } } },
    { save: 'a' },
  ),
  merge('the same status', 'machines/a/status', { status: { currentStatus: { phase: 'Running' } } }, { save: 'a' }),
  merge('the status beside labels, which stay', 'machines/a/status', {
    metadata: { labels: { l: 'x' } },
    status: { lastOperation: { type: 'Create' } },
  }),
  merge('the status with another uid, which is not looked at', 'machines/a/status', {
    metadata: { uid: OTHER_UID },
    status: { lastOperation: { type: 'Delete' } },
  }),
  merge('the status with an old resourceVersion', 'machines/a/status', (given: Given) => ({
    metadata: { resourceVersion: rvOf(given, 'a') },
    status: { lastOperation: { type: 'Create' } },
  })),
  merge('the status past its subresource, which stays', 'machines/a', {
    status: { currentStatus: { phase: 'Failed' } },
  }),
  merge('the spec by the status subresource, which stays', 'machines/a/status', { spec: { drainTimeout: '9m' } }),
  merge('a status that is null', 'machines/b/status', { status: null }),
  merge('a status of another type', 'machines/b/status', { status: { currentStatus: 'x' } }),

  get('before it is replaced', 'machines/a', { save: 'a' }),
  put('as it is', 'machines/a', (given: Given) => given.saved('a')),
  put('without a resourceVersion', 'machines/a', machine('a')),
  put('with an old resourceVersion', 'machines/a', machine('a', {}, { resourceVersion: '1' })),
  put(
    'with another uid',
    'machines/a',
    (given: Given) => machine('a', {}, { uid: OTHER_UID, resourceVersion: rvOf(given, 'a') }),
    {
      kept: { what: 'message', why: 'what the storage says' },
    },
  ),
  put('with another name', 'machines/a', (given: Given) => machine('q', {}, { resourceVersion: rvOf(given, 'a') })),
  put('with less in it', 'machines/a', (given: Given) => machine('a', {}, { resourceVersion: rvOf(given, 'a') }), {
    save: 'a',
  }),
  put('its status', 'machines/a/status', (given: Given) =>
    machine('a', { status: { node: 'n1' } }, { resourceVersion: rvOf(given, 'a') }),
  ),
  put('one that does not exist', 'machines/none', machine('none', {}, { resourceVersion: '1' })),
];
