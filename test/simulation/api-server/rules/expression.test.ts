import { describe, expect, test } from '@jest/globals';

import { compile, Optional } from './expression.ts';

const NONE = new Optional(undefined);

describe('a rule', () => {
  test.each([
    { rule: 'self >= 0 || (oldSelf.hasValue() && self == oldSelf.value())', self: -1, oldSelf: NONE, want: false },
    {
      rule: 'self >= 0 || (oldSelf.hasValue() && self == oldSelf.value())',
      self: -1,
      oldSelf: new Optional(-1),
      want: true,
    },
    { rule: "type(self) == int ? self > 1 : self.matches('^[0-9]+%$')", self: '5%', want: true },
    { rule: "type(self) == int ? self > 1 : self.matches('^[0-9]+%$')", self: 1, want: false },
    { rule: 'has(self.a) && has(self.a.b)', self: { a: {} }, want: false },
    { rule: '!has(self.a) || size(self.a) > 0', self: { a: {} }, want: false },
    { rule: "'a' in self && self['a'] in ['x', 'y']", self: { a: 'y' }, want: true },
    {
      rule: 'self.a.all(k, k in self.b && self.b[k] == self.a[k])',
      self: { a: { x: '1' }, b: { x: '1' } },
      want: true,
    },
    { rule: 'self.a.all(k, k in self.b && self.b[k] == self.a[k])', self: { a: { x: '1' }, b: {} }, want: false },
    { rule: 'oldSelf.?a.?b.hasValue()', self: {}, oldSelf: new Optional({ a: { b: 0 } }), want: true },
    { rule: 'oldSelf.?a.?b.hasValue()', self: {}, oldSelf: NONE, want: false },
    { rule: "duration(self) >= duration('1m')", self: '90s', want: true },
    { rule: '[has(self.a), has(self.b)].exists_one(one, one)', self: { a: 1 }, want: true },
    { rule: '[has(self.a), has(self.b)].exists_one(one, one)', self: { a: 1, b: 1 }, want: false },
    { rule: '[has(self.a), has(self.b)].exists_one(one, one)', self: {}, want: false },
    { rule: "self.exists(one, one.name == 'a')", self: [{ name: 'b' }, { name: 'a' }], want: true },
    { rule: "self.exists(one, one.name == 'a')", self: [], want: false },
    { rule: "quantity(string(self)).isGreaterThan(quantity('0'))", self: '1Gi', want: true },
    { rule: "quantity(string(self)).isGreaterThan(quantity('0'))", self: '0', want: false },
    { rule: 'int(self) > 0', self: 1, want: true },
    { rule: "!self.contains('.')", self: 'a.b', want: false },
    { rule: 'self.none || true', self: {}, want: true },
    { rule: 'self.none && false', self: {}, want: false },
  ])('$rule of $self is $want', ({ rule, self, oldSelf, want }) => {
    expect(compile(rule)({ self, oldSelf })).toBe(want);
  });

  test('has no value where a field is missing', () => {
    expect(() => compile('self.none')({ self: {} })).toThrow('no such field: none');
  });

  test.each(['self +', 'self.map(x, x)', "'a' + 'b'", 'self ==', '(self'])('%s is not understood', (rule) => {
    expect(() => compile(rule)({ self: [] })).toThrow(/./);
  });
});
