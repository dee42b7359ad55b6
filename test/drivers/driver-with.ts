import type { Driver } from '../../pkg/driver/driver.ts';

/** The same driver but for these methods. All others are called on `driver` itself: some drivers have private fields. */
export function driverWith(driver: Driver, methods: Partial<Driver>): Driver {
  return new Proxy(driver, {
    get(target, name) {
      const other: unknown = Reflect.get(methods, name);
      if (other !== undefined) return other;
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
}
