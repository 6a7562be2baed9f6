// Numbers and times in words, in the reader's language and time zone.

import { h } from './dom.js';

const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const NUMBER = new Intl.NumberFormat(undefined);
const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** 1234 as `1,234`. */
export function number(value) {
  return NUMBER.format(value);
}

/** `1 call`, `2 calls`. */
export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** A size in bytes with a fitting unit. */
export function bytes(size) {
  if (size === null || size === undefined) return '–';
  let unit = 0;
  let value = size;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  if (unit === 0) return count(size, 'byte');
  return `${value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** A duration in milliseconds with a fitting unit. */
export function duration(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The rest of a time, as `4:05`. */
export function countdown(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** A time as an element: the clock of today, else with the date; the exact time in its title. */
export function time(text) {
  if (!text) return '–';
  const when = new Date(text);
  if (Number.isNaN(when.getTime())) return text;
  const today = when.toDateString() === new Date().toDateString();
  return h('time', { datetime: text, title: text }, (today ? CLOCK : DAY).format(when));
}
