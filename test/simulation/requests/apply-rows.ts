import type { Members } from '../api-server/json.ts';
import { apply, del, get, merge, post, type Row, rvOf } from './row.ts';
import { machine } from './objects.ts';

const OF_ONE = '?fieldManager=one&force=true';
const OF_OTHER = '?fieldManager=other&force=true';
const DRY = '?dryRun=All';

const settings = (data: Members, metadata: Members = {}): Members => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'settings', ...metadata },
  data,
});
const applied = (spec: Members, metadata: Members = {}): Members =>
  machine('applied', { spec: { class: { kind: 'MachineClass', name: 'pool' }, ...spec } }, metadata);

/** Server-side apply and dry runs. */
export const APPLY_ROWS: readonly Row[] = [
  apply('a ConfigMap that does not exist', 'configmaps/settings', settings({ a: '1', b: '2' }), { query: OF_ONE }),
  apply('the same again', 'configmaps/settings', settings({ a: '1', b: '2' }), { query: OF_ONE, save: 'settings' }),
  apply('without a member that was applied', 'configmaps/settings', settings({ a: '3' }), { query: OF_ONE }),
  merge('a member that somebody else writes', 'configmaps/settings', { data: { c: 'theirs' } }),
  apply('which stays', 'configmaps/settings', settings({ a: '4' }), { query: OF_ONE }),
  apply('by another manager', 'configmaps/settings', settings({ a: '4', d: '5' }), { query: OF_OTHER }),
  apply('without a member that both have applied', 'configmaps/settings', settings({ e: '6' }), { query: OF_ONE }),
  apply(
    'of an earlier state',
    'configmaps/settings',
    (given) => settings({ e: '6' }, { resourceVersion: rvOf(given, 'settings') }),
    { query: OF_ONE },
  ),
  apply('without a manager', 'configmaps/settings', settings({}), { query: '?force=true' }),
  get('what was applied', 'configmaps/settings'),

  apply('a Machine', 'machines/applied', applied({ providerID: 'sim:///a' }, { finalizers: ['example.com/one'] }), {
    query: OF_ONE,
  }),
  apply(
    'with a label and a finalizer of another manager',
    'machines/applied',
    applied({ providerID: 'sim:///a' }, { labels: { pool: 'a' }, finalizers: ['example.com/two'] }),
    { query: OF_OTHER },
  ),
  apply('without its own', 'machines/applied', applied({ providerID: 'sim:///b' }), { query: OF_ONE }),
  apply(
    'without the finalizer of the other',
    'machines/applied',
    applied({ providerID: 'sim:///b' }, { labels: { pool: 'a' } }),
    { query: OF_OTHER },
  ),

  post('a dry run of a creation', 'machines', machine('dry'), { query: DRY }),
  get('which has made nothing', 'machines/dry'),
  post('a dry run of a creation that is refused', 'machines', { ...machine('dry'), metadata: {} }, { query: DRY }),
  post('another value of dryRun', 'machines', machine('dry'), { query: '?dryRun=Some' }),
  apply('a dry run of an apply', 'machines/dry', machine('dry'), { query: `${OF_ONE}&dryRun=All` }),
  merge('a dry run of a patch', 'machines/applied', { metadata: { labels: { pool: 'b' } } }, { query: DRY }),
  del('a dry run of a DELETE', 'machines/applied', undefined, { query: DRY }),
  del('by its options', 'machines/applied', { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] }),
  get('which have changed nothing', 'machines/applied'),
  del('an applied Machine that goes', 'machines/applied'),
  del('a ConfigMap that goes', 'configmaps/settings'),
];
