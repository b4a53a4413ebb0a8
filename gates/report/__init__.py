"""What people read: terminal table, report.md and the page report.html."""
