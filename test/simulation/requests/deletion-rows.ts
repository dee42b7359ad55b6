import { machine, pod } from './objects.ts';
import { del, get, type Given, jsonPatch, merge, OTHER_UID, post, type Row, rvOf, uidOf } from './row.ts';

const finalizers = ['machine.sapcloud.io/machine-controller-manager'];
const bound = { nodeName: 'nowhere', tolerations: [{ operator: 'Exists' }] };

/** Deletion: preconditions, finalizers, propagation, graces. */
export const DELETION_ROWS: readonly Row[] = [
  post('a Machine that nothing holds', 'machines', machine('free'), { save: 'free' }),
  del('with another uid', 'machines/free', { preconditions: { uid: OTHER_UID } }),
  del('with an old resourceVersion', 'machines/free', { preconditions: { resourceVersion: '1' } }),
  del('with its uid and resourceVersion', 'machines/free', (given: Given) => ({
    preconditions: { uid: uidOf(given, 'free'), resourceVersion: rvOf(given, 'free') },
  })),
  get('what is gone', 'machines/free'),
  post('a Machine of the same name', 'machines', machine('free', {}, { finalizers }), { save: 'free' }),
  del('what a finalizer holds', 'machines/free', { preconditions: {} }, { save: 'free' }),
  del('the same again', 'machines/free'),
  get('what is being deleted', 'machines/free', { save: 'free' }),
  merge('a finalizer beside the other', 'machines/free', { metadata: { finalizers: [...finalizers, 'a.b/c'] } }),
  merge('a label of what is being deleted', 'machines/free', { metadata: { labels: { a: 'b' } } }),
  merge('the spec of what is being deleted', 'machines/free', { spec: { drainTimeout: '1m' } }),
  merge('the status of what is being deleted', 'machines/free/status', { status: { node: 'n' } }),
  merge('its deletionTimestamp, which stays', 'machines/free', { metadata: { deletionTimestamp: null } }),
  merge('its grace, which stays', 'machines/free', { metadata: { deletionGracePeriodSeconds: null } }),
  merge('its last finalizer goes', 'machines/free', { metadata: { finalizers: null } }),
  get('what was released', 'machines/free'),
  merge('what was released', 'machines/free', { metadata: { finalizers: null } }),

  post('a Machine with two finalizers', 'machines', machine('two', {}, { finalizers: ['a.b/one', 'a.b/two'] }), {
    save: 'two',
  }),
  jsonPatch('one of them goes, by a patch that tests', 'machines/two', (given: Given) => [
    { op: 'test', path: '/metadata/uid', value: uidOf(given, 'two') },
    { op: 'remove', path: '/metadata/finalizers/0' },
  ]),
  jsonPatch('a test that fails', 'machines/two', [{ op: 'test', path: '/metadata/uid', value: OTHER_UID }], {
    kept: { what: 'message', why: 'the words of the patch library' },
  }),
  jsonPatch('a path that is not there', 'machines/two', [{ op: 'remove', path: '/metadata/labels/x' }], {
    kept: { what: 'message', why: 'the words of the patch library' },
  }),
  jsonPatch('a replacement', 'machines/two', [{ op: 'add', path: '/spec/drainTimeout', value: '3m' }]),
  jsonPatch('an end of a list', 'machines/two', [{ op: 'add', path: '/metadata/finalizers/-', value: 'a.b/three' }]),
  jsonPatch('a key with a slash', 'machines/two', [
    { op: 'add', path: '/metadata/annotations', value: {} },
    { op: 'add', path: '/metadata/annotations/a~1b', value: 'x' },
  ]),
  jsonPatch('an unknown operation', 'machines/two', [{ op: 'frob', path: '/spec' }], {
    kept: { what: 'message', why: 'the words of the patch library' },
  }),
  del(
    'in the foreground',
    'machines/two',
    { propagationPolicy: 'Foreground' },
    { kept: { what: 'all', why: 'the garbage collector is quick' } },
  ),

  post('a Machine to orphan what it owns', 'machines', machine('orphaner', {}, { finalizers: ['a.b/one'] })),
  del(
    'orphaning',
    'machines/orphaner',
    { propagationPolicy: 'Orphan' },
    { kept: { what: 'all', why: 'the garbage collector is quick' } },
  ),

  post('a Machine of a collection', 'machines', machine('one-of', {}, { labels: { of: 'one' } })),
  post('another that a finalizer holds', 'machines', machine('other-of', {}, { labels: { of: 'other' }, finalizers })),
  del('a collection, as a selector selects', 'machines', {}, { query: '?labelSelector=of=one' }),
  del('those that are held', 'machines', undefined, { query: '?labelSelector=of=other' }),
  del('the same again', 'machines', undefined, { query: '?labelSelector=of=other' }),
  get('one that was selected', 'machines/one-of'),
  get('one that is held', 'machines/other-of'),
  del('of none', 'machines', undefined, { query: '?labelSelector=of=none' }),
  del(
    'with a uid that none of them has',
    'machines',
    { preconditions: { uid: OTHER_UID } },
    { query: '?labelSelector=of=other' },
  ),
  merge('the last finalizer of what is held goes', 'machines/other-of', { metadata: { finalizers: null } }),
  post('a ConfigMap of a collection', 'configmaps', { metadata: { name: 'of', labels: { of: 'one' } } }),
  del('of a built-in kind', 'configmaps', undefined, { query: '?labelSelector=of=one' }),

  post('a pod without a Node', 'pods', pod('unbound')),
  del('it goes at once', 'pods/unbound'),
  post('a pod that is bound', 'pods', pod('bound', bound), { save: 'bound' }),
  del('it has its grace', 'pods/bound', { preconditions: {} }),
  del('the same again, longer', 'pods/bound', { gracePeriodSeconds: 300 }),
  del('a shorter grace', 'pods/bound', { gracePeriodSeconds: 5 }),
  del('no grace', 'pods/bound', (given: Given) => ({
    gracePeriodSeconds: 0,
    preconditions: { uid: uidOf(given, 'bound') },
  })),
  get('a pod that is gone', 'pods/bound'),
  post('a pod with a grace of its own', 'pods', pod('graced', { ...bound, terminationGracePeriodSeconds: 7 })),
  del('its own grace', 'pods/graced'),
  del('and none', 'pods/graced', { gracePeriodSeconds: 0 }),
  post('a pod with a finalizer', 'pods', pod('held', bound, { finalizers: ['a.b/c'] })),
  del('without grace, a finalizer holds it', 'pods/held', { gracePeriodSeconds: 0 }),
  merge('and it goes', 'pods/held', { metadata: { finalizers: null } }),
  get('a pod that was released', 'pods/held'),
];
