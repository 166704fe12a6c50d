# perl mail_dkim.pl verify ZONE < MESSAGE: "pass" or what went wrong, one line
#   a signature, top to bottom.
# perl mail_dkim.pl sign KEY DOMAIN SELECTOR METHOD < MESSAGE: the message,
#   signed by Mail::DKIM. Messages have CRLF.
use strict;
use warnings;
use Net::DNS;
use Mail::DKIM::Signer;
use Mail::DKIM::Verifier;

binmode STDIN;
binmode STDOUT;
my $action = shift @ARGV;
my $mail   = do { local $/; <STDIN> };

sub verify {
	my ($zone) = @_;
	my %txt;
	open(my $in, '<', $zone) or die "$zone: $!";
	while (<$in>) {
		next unless /^(\S+) TXT (.*)$/;
		my ($name, $strings) = (lc $1, $2);
		push @{ $txt{$name} }, [ $strings =~ /"((?:[^"\\]|\\.)*)"/g ];
	}
	no warnings 'redefine';
	*Mail::DKIM::DNS::query = sub {
		my $name = lc shift;
		$name =~ s/\.$//;
		return map {
			Net::DNS::RR->new(name => $name, type => 'TXT',
				txtdata => $_)
		} @{ $txt{$name} || [] };
	};
	my $dkim = Mail::DKIM::Verifier->new(AllowNonTextSignature => 1);
	$dkim->PRINT($mail);
	$dkim->CLOSE;
	print $_->result_detail, "\n" for $dkim->signatures;
}

sub sign {
	my ($key, $domain, $selector, $method) = @_;
	my $dkim = Mail::DKIM::Signer->new(Algorithm => 'rsa-sha256',
		Method => $method, Domain => $domain, Selector => $selector,
		KeyFile => $key);
	$dkim->PRINT($mail);
	$dkim->CLOSE;
	my $field = $dkim->signature->as_string;
	$field =~ s/\r?\n/\r\n/g;
	print $field, "\r\n", $mail;
}

$action eq 'verify' ? verify(@ARGV) : sign(@ARGV);
