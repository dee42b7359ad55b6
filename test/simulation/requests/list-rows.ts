import { METADATA, METADATA_LIST } from '../../../pkg/kube/client/list-watch.ts';
import { at } from '../api-server/json.ts';
import { machine } from './objects.ts';
import { get, type Given, post, type Row, rvOf } from './row.ts';

const listed = (query: string) => `?labelSelector=${encodeURIComponent('list=yes')}&${query}`;
const tokenOf = (given: Given, name: string): string =>
  encodeURIComponent(String(at(given.saved(name), ['metadata', 'continue'])));

/** Lists: selectors, pages, resourceVersions. */
export const LIST_ROWS: readonly Row[] = [
  ...['l1', 'l2', 'l3', 'l4', 'l5'].map((name, i) =>
    post(
      `a Machine to list: ${name}`,
      'machines',
      machine(name, {}, { labels: { list: 'yes', number: String(i), ...(i > 2 && { late: '' }) } }),
      { save: name },
    ),
  ),
  get('a list', 'machines', { query: listed('') }),
  get('a list of nothing', 'machines', { query: '?labelSelector=list%3Dno' }),
  ...[
    'number=1',
    'number==1',
    'number!=1',
    'late',
    '!late',
    'number in (0,2)',
    'number notin (0,2)',
    'number=1,late',
    'late,number=4',
  ].map((selector) =>
    get(`labels ${selector}`, 'machines', { query: `?labelSelector=${encodeURIComponent(`list=yes,${selector}`)}` }),
  ),
  get('a label selector that is none', 'machines', {
    query: '?labelSelector=a%3D%3D%3Db%2C',
    kept: { what: 'message', why: 'the words of the parser' },
  }),
  get('by name', 'machines', { query: '?fieldSelector=metadata.name%3Dl2' }),
  get('by a field that is not served', 'machines', {
    query: '?fieldSelector=spec.x%3D1',
    kept: { what: 'message', why: 'names of Go types' },
  }),
  get('pods by Node', 'pods', { query: '?fieldSelector=spec.nodeName%3Dnowhere' }),
  get('pods by Node that is none', 'pods', { query: '?fieldSelector=spec.nodeName!%3D' }),
  ...['apiVersion', 'kind', 'namespace', 'name', 'uid', 'resourceVersion', 'fieldPath'].map((field) =>
    get(`events by ${field} of their object`, 'events', { query: `?fieldSelector=involvedObject.${field}%3Dnone` }),
  ),
  ...['reason', 'reportingComponent', 'type'].map((field) =>
    get(`events by ${field}`, 'events', { query: `?fieldSelector=${field}%3Dnone` }),
  ),
  get('a page', 'machines', { query: listed('limit=2'), save: 'page' }),
  get('the next page', 'machines', {
    query: (given: Given) => listed(`limit=2&continue=${tokenOf(given, 'page')}`),
    save: 'page',
  }),
  get('the last page', 'machines', { query: (given: Given) => listed(`limit=2&continue=${tokenOf(given, 'page')}`) }),
  get('a page without a selector', 'machineclasses', { query: '?limit=1', save: 'page' }),
  get('and the next', 'machineclasses', { query: (given: Given) => `?limit=1&continue=${tokenOf(given, 'page')}` }),
  get('a page that holds all', 'machineclasses', { query: '?limit=500' }),
  get('a page from the cache', 'machines', { query: listed('limit=2&resourceVersion=0') }),
  get('a token that is none', 'machines', {
    query: '?limit=2&continue=nonsense',
    kept: { what: 'message', why: 'the words of the parser' },
  }),
  get('from the cache', 'machines', { query: listed('resourceVersion=0') }),
  get('not older than a write', 'machines', {
    query: (given: Given) => listed(`resourceVersion=${rvOf(given, 'l3')}&resourceVersionMatch=NotOlderThan`),
  }),
  get('at least of a write', 'machines', { query: (given: Given) => listed(`resourceVersion=${rvOf(given, 'l3')}`) }),
  get('exactly as of a write', 'machines', {
    query: (given: Given) => listed(`resourceVersion=${rvOf(given, 'l3')}&resourceVersionMatch=Exact`),
  }),
  get('exactly as of a write, by pages', 'machines', {
    query: (given: Given) => listed(`limit=1&resourceVersion=${rvOf(given, 'l3')}&resourceVersionMatch=Exact`),
    save: 'page',
  }),
  get('and the next page of it', 'machines', {
    query: (given: Given) => listed(`limit=5&continue=${tokenOf(given, 'page')}`),
  }),
  get('exactly as of the future', 'machines', {
    query: listed('resourceVersion=99999999&resourceVersionMatch=Exact'),
    kept: { what: 'message', why: 'it names resourceVersions' },
  }),
  get('not older than the future', 'machines', {
    query: listed('resourceVersion=99999999&resourceVersionMatch=NotOlderThan'),
    kept: { what: 'message', why: 'it names resourceVersions' },
  }),
  get('a match without a resourceVersion', 'machines', { query: '?resourceVersionMatch=Exact' }),
  get('an exact match of 0', 'machines', { query: '?resourceVersion=0&resourceVersionMatch=Exact' }),
  get('a resourceVersion that is none', 'machines', {
    query: '?resourceVersion=x',
    kept: { what: 'message', why: 'the words of the parser' },
  }),
  get('a list of metadata', 'machines', { query: listed(''), accept: METADATA_LIST }),
  get('the metadata of one', 'machines/l1', { accept: METADATA }),
  get('a list of a kind that is built in', 'secrets', { query: '?fieldSelector=metadata.name%3Ds' }),
  get('a list of metadata of nothing', 'machines', {
    query: '?fieldSelector=metadata.name%3Dnone',
    accept: METADATA_LIST,
  }),
  get('a list of metadata of nothing that is built in', 'secrets', {
    query: '?fieldSelector=metadata.name%3Dnone',
    accept: METADATA_LIST,
  }),
  get('its metadata', 'secrets', { query: '?fieldSelector=metadata.name%3Ds', accept: METADATA_LIST }),
];
